//===- MemoryMap.h - Which bytes a kernel may touch -------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_MEMORYMAP_H
#define LOWLP_CPU_LIB_MEMORYMAP_H

#include "lowlp/CPU/Executor.h"

#include <array>
#include <string>
#include <vector>

namespace lowlp {
namespace cpu {

/// One access, as `lowlpCpuCheckAccess` announces it.
struct Access {
  const void *base;
  int64_t byteOffset;
  int64_t bytes;
  int64_t alignmentBytes;
  bool isWrite;
};

/// The allocations that the threads of one worker see.
class MemoryMap {
public:
  explicit MemoryMap(const std::vector<Allocation> &global);
  MemoryMap(const MemoryMap &) = delete;
  MemoryMap &operator=(const MemoryMap &) = delete;

  /// Adds the shared memory of the worker's blocks.
  void setShared(const void *begin, int64_t bytes) {
    allocations.front() = {begin, bytes, "shared memory", /*writable=*/true};
  }

  /// Whether the access is aligned and lies in an allocation that its base
  /// points into and that allows it.
  bool allows(const Access &access, const char *site) {
    uintptr_t address = uintptr_t(access.base) + uintptr_t(access.byteOffset);
    if (address & uintptr_t(access.alignmentBytes - 1))
      return false;
    // An op nearly always goes to the same allocation as the time before.
    const Allocation *&hint = hints[hintIndex(site)];
    if (hint && allowsIn(*hint, access))
      return true;
    for (const Allocation &candidate : allocations) {
      if (!allowsIn(candidate, access))
        continue;
      hint = &candidate;
      return true;
    }
    return false;
  }

  /// What is wrong with an access that `allows` refused, as the words that
  /// follow "site: ".
  std::string explain(const Access &access) const;

private:
  static size_t hintIndex(const char *site) {
    return (uintptr_t(site) ^ uintptr_t(site) >> 6) % numHints;
  }
  static bool pointsInto(const Allocation &allocation, const void *base);
  static bool inBounds(const Allocation &allocation, const Access &access);
  static bool allowsIn(const Allocation &allocation, const Access &access) {
    return inBounds(allocation, access) &&
           (allocation.writable || !access.isWrite);
  }
  std::string describe(const Allocation &allocation,
                       const Access &access) const;

  static constexpr size_t numHints = 64;
  std::vector<Allocation> allocations; ///< shared memory is the first
  std::array<const Allocation *, numHints> hints{};
};

/// Whether `base` lies in the allocation. The begin of an empty one counts, so
/// that reports can name it; the end does not, since the next one may start
/// there.
inline bool MemoryMap::pointsInto(const Allocation &allocation,
                                  const void *base) {
  uintptr_t offset = uintptr_t(base) - uintptr_t(allocation.begin);
  return base && (offset == 0 || offset < uintptr_t(allocation.bytes));
}

inline bool MemoryMap::inBounds(const Allocation &allocation,
                                const Access &access) {
  if (!pointsInto(allocation, access.base))
    return false;
  int64_t offset =
      int64_t(uintptr_t(access.base)) - int64_t(uintptr_t(allocation.begin));
  if (__builtin_add_overflow(offset, access.byteOffset, &offset))
    return false;
  return offset >= 0 && access.bytes <= allocation.bytes &&
         offset <= allocation.bytes - access.bytes;
}

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_MEMORYMAP_H
