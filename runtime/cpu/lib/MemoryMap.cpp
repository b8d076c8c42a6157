//===- MemoryMap.cpp - Which bytes a kernel may touch ---------------------===//

#include "MemoryMap.h"

using namespace lowlp::cpu;

MemoryMap::MemoryMap(const std::vector<Allocation> &global) {
  allocations.emplace_back();
  allocations.insert(allocations.end(), global.begin(), global.end());
}

/// "read of 16 bytes at byte offset 4096 of argument 'x' (4096 bytes)", where
/// the offset counts from the begin of the allocation. It wraps like the
/// address does if the program's own offset is out of all proportion.
std::string MemoryMap::describe(const Allocation &allocation,
                                const Access &access) const {
  uintptr_t offset = uintptr_t(access.base) + uintptr_t(access.byteOffset) -
                     uintptr_t(allocation.begin);
  std::string text = access.isWrite ? "write of " : "read of ";
  text += std::to_string(access.bytes) + " bytes at byte offset " +
          std::to_string(int64_t(offset)) + " of ";
  if (&allocation == &allocations.front())
    text += "shared memory";
  else
    text += "argument '" + std::string(allocation.name ? allocation.name : "") +
            "'";
  return text + " (" + std::to_string(allocation.bytes) + " bytes)";
}

std::string MemoryMap::explain(const Access &access) const {
  std::string what = access.isWrite ? "write of " : "read of ";
  what += std::to_string(access.bytes) + " bytes ";
  if (!access.base)
    return what + "through a null pointer";

  const Allocation *pointedInto = nullptr;
  const Allocation *containing = nullptr;
  for (const Allocation &candidate : allocations) {
    if (!pointedInto && pointsInto(candidate, access.base))
      pointedInto = &candidate;
    // Of two allocations that contain the access, the one that allows it is the
    // one the program must have meant.
    bool better = !containing || (access.isWrite && !containing->writable);
    if (inBounds(candidate, access) && better)
      containing = &candidate;
  }
  if (!pointedInto)
    return what + "through a pointer that lies in no allocation of this launch";
  if (!containing)
    return describe(*pointedInto, access) + " is outside the allocation";
  if (access.isWrite && !containing->writable)
    return describe(*containing, access) + ", which is read-only";
  uintptr_t address = uintptr_t(access.base) + uintptr_t(access.byteOffset);
  uintptr_t excess = address & uintptr_t(access.alignmentBytes - 1);
  return describe(*containing, access) + " is misaligned: its address is " +
         std::to_string(excess) + " bytes past a multiple of " +
         std::to_string(access.alignmentBytes);
}
