//===- ThreadOrder.h - What mbarriers order within a block ------*- C++ -*-===//
//
// Vector clocks. Time is a count of the block's own events, and what a thread
// does at time t is ordered before what thread v does now if v has seen it:
//
//   a thread that arrives at an mbarrier releases all it has seen, itself up to
//   now included; what the arrivals of a phase release comes together; a thread
//   that waits for the phase acquires it. A barrier of the block shows
//   everything so far to everybody, one of a warpgroup to its threads.
//
// The clock of a thread has a component for each thread and one for each
// mbarrier. The latter stands for the bulk copies that complete its phases:
// whoever waits for a phase has seen the bytes.
//
// Beside what a thread has seen stands what of it lies after a fence between
// the generic and the async proxy (PTX ISA, "Async proxy"), and how many phases
// of each mbarrier the thread knows to be complete.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_THREADORDER_H
#define LOWLP_CPU_LIB_THREADORDER_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lowlp {
namespace cpu {

/// What a thread has seen, or what is handed on from thread to thread.
struct Sight {
  std::vector<uint32_t> seen;   ///< by component: up to this time
  std::vector<uint32_t> fenced; ///< likewise, after a fence of proxies
  uint32_t fencedBelow = 0;     ///< so is all up to this time
  std::vector<uint32_t> phases; ///< by mbarrier: phases known to be complete

  void join(const Sight &other);
};

/// The order of the threads of one block.
class ThreadOrder {
public:
  /// Forgets everything. Requires: `numThreads` is that of the block.
  void reset(int32_t numThreads);

  /// Adds the component of another mbarrier.
  int32_t addMbarrier() { return numMbarriers++; }
  uint16_t componentOf(int32_t mbarrier) const {
    return uint16_t(numThreads + mbarrier);
  }

  /// The time of what happens now.
  uint32_t getTime() const { return now; }

  /// Whether `thread` has seen what `component` did at `time`.
  bool hasSeen(int32_t thread, uint16_t component, uint32_t time) const {
    return component == thread || time <= seenByAll ||
           time <= at(sights[size_t(thread)].seen, component);
  }

  /// Whether a fence of proxies lies in between as well.
  bool isFenced(int32_t thread, uint16_t component, uint32_t time) const {
    const Sight &sight = sights[size_t(thread)];
    return time <=
           std::max({sight.fencedBelow, at(sight.fenced, component),
                     allFenced.fencedBelow, at(allFenced.fenced, component)});
  }

  /// Whether `thread` may have seen something of `other` since the last barrier
  /// of the block.
  bool mayHaveSeen(int32_t thread, uint16_t other) const {
    return other == thread ||
           at(sights[size_t(thread)].seen, other) > seenByAll;
  }

  /// Adds to `sight` what `thread` has seen and done.
  void release(int32_t thread, Sight &sight);
  /// Adds to `sight` that all bulk copies up to now that complete phases of
  /// `mbarrier` have come, and that it is `numPhases` phases on.
  void completePhase(int32_t mbarrier, uint32_t numPhases, Sight &sight);
  /// Lets `thread` see what was released.
  void acquire(int32_t thread, const Sight &sight);
  /// A fence of proxies by `thread`.
  void fence(int32_t thread);
  /// A barrier of the block.
  void joinAll();
  /// A barrier of the threads from `first` up to `end`.
  void join(int32_t first, int32_t end);

  /// How many phases of `mbarrier` the thread knows to be complete.
  uint32_t knownPhases(int32_t thread, int32_t mbarrier) const {
    return std::max(at(sights[size_t(thread)].phases, size_t(mbarrier)),
                    at(allFenced.phases, size_t(mbarrier)));
  }
  /// Lets the threads `firstThread` + i, for each bit i of `lanes`, know what
  /// one of them knows. A collective orders no memory, but nobody passes it
  /// before the others came.
  void sharePhases(int32_t firstThread, uint32_t lanes);
  /// Lets `thread` know what anyone knew who was here before. An atomic orders
  /// no memory either, but a thread may go on when it has seen a value.
  void sharePhasesByAtomic(int32_t thread);

  static void joinMax(std::vector<uint32_t> &to,
                      const std::vector<uint32_t> &from);

private:
  static uint32_t at(const std::vector<uint32_t> &clock, size_t component) {
    return component < clock.size() ? clock[component] : 0;
  }
  static void raise(std::vector<uint32_t> &clock, size_t component,
                    uint32_t time) {
    if (component >= clock.size())
      clock.resize(component + 1);
    clock[component] = std::max(clock[component], time);
  }

  int32_t numThreads = 0;
  int32_t numMbarriers = 0;
  uint32_t now = 1;
  uint32_t seenByAll = 0;
  Sight allFenced; ///< what everybody knows; its `seen` is `seenByAll`
  std::vector<Sight> sights; ///< by thread
  std::vector<uint32_t> phasesByAtomics;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_THREADORDER_H
