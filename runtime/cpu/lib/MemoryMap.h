//===- MemoryMap.h - Which bytes a kernel may touch -------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_MEMORYMAP_H
#define LOWLP_CPU_LIB_MEMORYMAP_H

#include "Shadow.h"

#include "lowlp/CPU/Executor.h"

#include <array>
#include <memory>
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
  AccessKind kind;

  bool isWrite() const { return kind != PlainRead; }
};

/// An allocation, and where its bytes are in the shadow of its memory.
struct Place {
  Allocation allocation;
  Shadow *shadow = nullptr; ///< null: nothing to remember about it
  int64_t shadowOffset = 0;

  /// Bytes from the begin of the allocation to those of `access`. It wraps like
  /// the address does if the program's offset is out of all proportion.
  int64_t offsetOf(const Access &access) const {
    return int64_t(uintptr_t(access.base) + uintptr_t(access.byteOffset) -
                   uintptr_t(allocation.begin));
  }
};

/// The global memory of a launch. Allocations that overlap have one shadow;
/// memory that is only read, and initialised, has none.
class GlobalMemory {
public:
  explicit GlobalMemory(const LaunchConfig &config);
  const std::vector<Place> &getPlaces() const { return places; }

  /// Whether there was memory for all shadows.
  bool isValid() const { return valid; }

private:
  void addShadow(const LaunchConfig &config, const std::vector<size_t> &members,
                 uintptr_t begin, uintptr_t end);

  std::vector<Place> places; ///< in the order of the configuration
  std::vector<std::unique_ptr<Shadow>> shadows;
  bool valid = true;
};

/// The memory that the threads of one worker see.
class MemoryMap {
public:
  explicit MemoryMap(const GlobalMemory &global);
  MemoryMap(const MemoryMap &) = delete;
  MemoryMap &operator=(const MemoryMap &) = delete;

  /// Adds the shared memory of the worker's blocks.
  void setShared(const void *begin, int64_t bytes, Shadow *shadow) {
    Allocation allocation;
    allocation.begin = begin;
    allocation.bytes = bytes;
    allocation.name = "shared memory";
    allocation.writable = true;
    places.front() = {allocation, shadow, 0};
  }

  /// The allocation that the access goes to, or null if it is misaligned or
  /// lies in none that its base points into and that allows it.
  const Place *find(const Access &access, const char *site) {
    uintptr_t address = uintptr_t(access.base) + uintptr_t(access.byteOffset);
    if (address & uintptr_t(access.alignmentBytes - 1))
      return nullptr;
    // An op nearly always goes to the same allocation as the time before.
    const Place *&hint = hints[hintIndex(site)];
    if (hint && allowsIn(hint->allocation, access))
      return hint;
    for (const Place &candidate : places)
      if (allowsIn(candidate.allocation, access))
        return hint = &candidate;
    return nullptr;
  }

  /// What is wrong with an access for which `find` found nothing, as the words
  /// that follow "site: ".
  std::string explain(const Access &access) const;

  /// "read of 16 bytes at byte offset 4096 of argument 'x' (4096 bytes)", where
  /// the offset counts from the begin of the allocation.
  std::string describe(const Place &place, const Access &access) const;

  /// "byte offset 4 of argument 'x' (64 bytes)"
  std::string describeAddress(const void *address) const;

  bool isShared(const Place &place) const { return &place == &places.front(); }

  /// "argument 'x'" or "shared memory"
  std::string nameOf(const Place &place) const;

private:
  static size_t hintIndex(const char *site) {
    return (uintptr_t(site) ^ uintptr_t(site) >> 6) % numHints;
  }
  static bool pointsInto(const Allocation &allocation, const void *base);
  static bool inBounds(const Allocation &allocation, const Access &access);
  static bool allowsIn(const Allocation &allocation, const Access &access) {
    return inBounds(allocation, access) &&
           (allocation.writable || !access.isWrite());
  }

  static constexpr size_t numHints = 64;
  std::vector<Place> places; ///< shared memory is the first
  std::array<const Place *, numHints> hints{};
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
