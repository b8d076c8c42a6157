//===- MemoryMap.cpp - Which bytes a kernel may touch ---------------------===//

#include "MemoryMap.h"

#include <algorithm>

using namespace lowlp::cpu;

// Shadows begin at a multiple of the coarsest granule, so that aligned accesses
// stay within one.
constexpr uintptr_t shadowAlignmentBytes = 16;

GlobalMemory::GlobalMemory(const LaunchConfig &config) {
  for (const Allocation &allocation : config.allocations)
    places.push_back({allocation, nullptr, 0});
  std::vector<size_t> order(places.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  auto beginOf = [&](size_t i) {
    return uintptr_t(places[i].allocation.begin);
  };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return beginOf(a) < beginOf(b); });
  std::vector<size_t> members;
  uintptr_t begin = 0, end = 0;
  for (size_t i : order) {
    if (!members.empty() && beginOf(i) >= end) {
      addShadow(config, members, begin, end);
      members.clear();
    }
    if (members.empty())
      begin = end = beginOf(i);
    end = std::max(end, beginOf(i) + uintptr_t(places[i].allocation.bytes));
    members.push_back(i);
  }
  if (!members.empty())
    addShadow(config, members, begin, end);
}

/// Gives the allocations `members`, which lie in [begin, end), a shadow if
/// there is something to find.
void GlobalMemory::addShadow(const LaunchConfig &config,
                             const std::vector<size_t> &members,
                             uintptr_t begin, uintptr_t end) {
  bool isWritable = false, isInitialised = false;
  for (size_t i : members) {
    isWritable |= places[i].allocation.writable;
    isInitialised |= places[i].allocation.initialised;
  }
  Shadow::Options options;
  options.findsRaces = isWritable && (config.checks & LowlpCheckRaces);
  options.findsUninitialised =
      !isInitialised && (config.checks & LowlpCheckUninitialised);
  options.isInitialised = isInitialised;
  options.isOwnedByBlock = false;
  if (begin == end || !(options.findsRaces || options.findsUninitialised))
    return;
  begin -= begin % shadowAlignmentBytes;
  shadows.push_back(std::make_unique<Shadow>(int64_t(end - begin), options));
  valid &= shadows.back()->isValid();
  for (size_t i : members) {
    places[i].shadow = shadows.back().get();
    places[i].shadowOffset =
        int64_t(uintptr_t(places[i].allocation.begin) - begin);
  }
}

MemoryMap::MemoryMap(const GlobalMemory &global) {
  places.emplace_back();
  places.insert(places.end(), global.getPlaces().begin(),
                global.getPlaces().end());
}

static const char *nameOf(AccessKind kind) {
  return kind == PlainRead ? "read" : kind == PlainWrite ? "write" : "atomic";
}

std::string MemoryMap::nameOf(const Place &place) const {
  if (isShared(place))
    return "shared memory";
  const char *name = place.allocation.name;
  return "argument '" + std::string(name ? name : "") + "'";
}

std::string MemoryMap::describe(const Place &place,
                                const Access &access) const {
  return ::nameOf(access.kind) + (" of " + std::to_string(access.bytes)) +
         " bytes at byte offset " + std::to_string(place.offsetOf(access)) +
         " of " + nameOf(place) + " (" +
         std::to_string(place.allocation.bytes) + " bytes)";
}

std::string MemoryMap::describeAddress(const void *address) const {
  for (const Place &place : places)
    if (pointsInto(place.allocation, address))
      return "byte offset " +
             std::to_string(place.offsetOf({address, 0, 0, 1, PlainRead})) +
             " of " + nameOf(place) + " (" +
             std::to_string(place.allocation.bytes) + " bytes)";
  return "a word that lies in no allocation of this launch";
}

std::string MemoryMap::explain(const Access &access) const {
  std::string what = ::nameOf(access.kind) +
                     (" of " + std::to_string(access.bytes)) + " bytes ";
  if (!access.base)
    return what + "through a null pointer";

  const Place *pointedInto = nullptr;
  const Place *containing = nullptr;
  for (const Place &candidate : places) {
    if (!pointedInto && pointsInto(candidate.allocation, access.base))
      pointedInto = &candidate;
    // Of two allocations that contain the access, the one that allows it is the
    // one the program must have meant.
    bool better =
        !containing || (access.isWrite() && !containing->allocation.writable);
    if (inBounds(candidate.allocation, access) && better)
      containing = &candidate;
  }
  if (!pointedInto)
    return what + "through a pointer that lies in no allocation of this launch";
  if (!containing)
    return describe(*pointedInto, access) + " is outside the allocation";
  if (access.isWrite() && !containing->allocation.writable)
    return describe(*containing, access) + ", which is read-only";
  uintptr_t address = uintptr_t(access.base) + uintptr_t(access.byteOffset);
  uintptr_t excess = address & uintptr_t(access.alignmentBytes - 1);
  return describe(*containing, access) + " is misaligned: its address is " +
         std::to_string(excess) + " bytes past a multiple of " +
         std::to_string(access.alignmentBytes);
}
