//===- Divergence.cpp - Reports of threads that cannot meet ---------------===//

#include "Block.h"

#include <cstdio>

using namespace lowlp::cpu;

namespace {

/// "lane 3", "lanes 0-15, 17"
std::string describeLanes(uint32_t mask) {
  std::string text = (mask & (mask - 1)) ? "lanes " : "lane ";
  const char *separator = "";
  for (int lane = 0; lane < lanesPerWarp; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    int first = lane;
    while (lane + 1 < lanesPerWarp && (mask >> (lane + 1) & 1))
      ++lane;
    text += separator + std::to_string(first);
    if (lane != first)
      text += "-" + std::to_string(lane);
    separator = ", ";
  }
  return text;
}

/// The members of a shuffle, since lanes that differ in nothing else do not
/// meet either; of other arrivals nothing.
std::string describeMembers(const Arrival &arrival) {
  if (arrival.kind != MeetingKind::Shuffle)
    return "";
  char text[32];
  std::snprintf(text, sizeof(text), " (members 0x%08x)",
                unsigned(arrival.members));
  return text;
}

std::string describePlace(const Arrival &arrival) {
  if (arrival.kind == MeetingKind::Mbarrier)
    return arrival.site + (" (" + arrival.mbarrier->describe()) + ", whose " +
           arrival.mbarrier->describeMissing() + ")";
  return arrival.site + describeMembers(arrival);
}

const char *describeDivergence(const Arrival &arrival) {
  return arrival.kind == MeetingKind::Barrier ? "divergent barrier: "
                                              : "divergent collective: ";
}

bool isWaiting(const LowlpThread &thread) {
  return thread.state != ThreadState::Ready &&
         thread.state != ThreadState::Exited;
}

} // namespace

/// Reports that `thread` has come to a place where it and the lanes of
/// `conflict` wait for each other; if there are none, to another barrier than
/// the rest of the block.
void Block::setDivergenceError(const LowlpThread &thread, uint32_t conflict) {
  const Arrival &arrival = thread.arrival;
  std::string text = describeDivergence(arrival);
  if (!conflict) {
    setError(thread, arrival.site, text + listWaiting());
    return;
  }
  uint32_t here = arrival.kind == MeetingKind::Barrier
                      ? warpOf(thread).atBarrier
                      : lanesArrivedWith(thread);
  text += "in warp " + std::to_string(thread.warpIndex()) + ", " +
          describeLanes(here) + " came here" + describeMembers(arrival);
  const char *separator = " while ";
  while (conflict) {
    const LowlpThread &first = neighbour(thread, __builtin_ctz(conflict));
    uint32_t together = 0;
    for (int lane = 0; lane < lanesPerWarp; ++lane)
      if ((conflict >> lane & 1) &&
          neighbour(thread, lane).arrival.agreesWith(first.arrival))
        together |= uint32_t(1) << lane;
    conflict &= ~together;
    text += separator + describeLanes(together) +
            ((together & (together - 1)) ? " wait at " : " waits at ") +
            describePlace(first.arrival);
    separator = " and ";
  }
  setError(thread, arrival.site, text);
}

/// Reports that two warps of a warpgroup have come to different places, at one
/// of which all of them must meet.
void Block::setStrayWarpError(const LowlpThread &thread,
                              const LowlpThread &stray) {
  setError(
      thread, thread.arrival.site,
      describeDivergence(thread.arrival) +
          ("the four warps of a warpgroup come here together, but thread " +
           toString(stray.position)) +
          " waits at " + describePlace(stray.arrival));
}

/// Reports that `exited` can no longer come where others wait for it.
void Block::setExitError(const LowlpThread &exited, const Arrival &missed) {
  setError(exited, missed.site,
           describeDivergence(missed) + std::string("thread ") +
               toString(exited.position) + " exited without coming here; " +
               listWaiting());
}

void Block::setDeadlockError() {
  failed = true;
  error = "deadlock: no thread of block " + toString(position) +
          " can go on; " + listWaiting();
}

/// "3 threads wait: thread (0, 0, 0) and 1 more at S, thread (2, 0, 0) at T",
/// with at most 8 places.
std::string Block::listWaiting() const {
  struct Place {
    const LowlpThread *first;
    int numThreads;
  };
  std::vector<Place> places;
  int numWaiting = 0;
  for (const LowlpThread &thread : threads) {
    if (!isWaiting(thread))
      continue;
    ++numWaiting;
    auto place = places.begin();
    while (place != places.end() &&
           !place->first->arrival.agreesWith(thread.arrival))
      ++place;
    if (place == places.end())
      places.push_back({&thread, 1});
    else
      ++place->numThreads;
  }
  constexpr size_t maxPlaces = 8;
  std::string text = std::to_string(numWaiting) +
                     (numWaiting == 1 ? " thread waits" : " threads wait");
  for (size_t i = 0; i < places.size() && i < maxPlaces; ++i) {
    text += (i == 0 ? ": thread " : ", thread ") +
            toString(places[i].first->position);
    if (places[i].numThreads > 1)
      text += " and " + std::to_string(places[i].numThreads - 1) + " more";
    text += " at " + describePlace(places[i].first->arrival);
  }
  if (places.size() > maxPlaces)
    text += ", and at " + std::to_string(places.size() - maxPlaces) +
            " more places";
  return text;
}
