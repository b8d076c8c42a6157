//===- Schedule.h - Which block starts when, and who sleeps -----*- C++ -*-===//
//
// The order of blocks is random within windows of increasing index:
//
//   grid      0 1 2 ... 15 | 16 17 ... 31 | 32 ...
//   start     7 0 12 ... 3 | 30 16 ... 21 | ...
//
// Some more blocks than a window has may be in flight, parked ones
// included. So a program in which blocks wait only for blocks of lower index
// always comes to an end: all blocks below the lowest unfinished one are done,
// so nothing keeps that one from running if it has started, and if it has not,
// those in flight are others of its window, which leave room for it. Blocks of
// a cluster also wait for others of up to 7 higher indices; so as many more may
// be in flight.
//
// A worker that can neither start a block nor go on with one sleeps. When all
// do, and no word that a block waits for has the value it waits for, that is a
// deadlock.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_SCHEDULE_H
#define LOWLP_CPU_LIB_SCHEDULE_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace lowlp {
namespace cpu {

class Block;

/// The seed's order of the blocks of a launch.
class BlockOrder {
public:
  /// Requires: `numBlocks` > 0 and `windowSize` > 0.
  BlockOrder(int64_t numBlocks, int64_t windowSize, uint64_t seed)
      : numBlocks(numBlocks), windowSize(windowSize), seed(seed) {}

  /// The index of the block at `position`.
  int64_t operator()(int64_t position) const;

private:
  int64_t numBlocks;
  int64_t windowSize;
  uint64_t seed;
};

/// What the workers of a launch share in order to divide its blocks. The error
/// that stands at the end is the one of the lowest position, not the first in
/// time: blocks at positions below it are run on as far as they can.
class Schedule {
public:
  /// `maxInFlight` blocks at most have started and not ended.
  Schedule(const BlockOrder &order, int64_t numBlocks, int64_t maxInFlight)
      : order(order), numBlocks(numBlocks), maxInFlight(maxInFlight),
        errorPosition(numBlocks) {}

  void addWorker();
  void removeWorker();

  /// Hands out the next block, if there is one and room for it.
  bool takeNext(int64_t &position, int64_t &block);

  /// A block that was handed out has ended or was given up.
  void giveBack();

  /// Whether blocks are left to hand out, now or later.
  bool hasMore();

  /// Whether the block at `position` still matters.
  bool matters(int64_t position) const {
    return position < errorPosition.load(std::memory_order_relaxed);
  }

  void fail(int64_t position, const std::string &text);

  /// Tells workers that sleep that a word has changed.
  void wake() {
    if (numAsleep.load() > 0)
      wakeAll();
  }

  /// Sleeps until the calling worker, which has `parked` blocks, may go on.
  /// Returns false, perhaps with an error, if it never will.
  bool sleep(const std::vector<Block *> &parked);

  /// The error of the launch, after all workers are done.
  const std::string &getError() const { return error; }

private:
  bool canTake() const;
  void record(int64_t position, const std::string &text);
  void wakeAll();
  void endAsleep();

  const BlockOrder order;
  const int64_t numBlocks;
  const int64_t maxInFlight;
  std::mutex mutex; ///< guards all below; atomics may be read without it
  std::condition_variable changed;
  uint64_t generation = 0; ///< changes with whatever sleepers wait for
  int64_t nextPosition = 0;
  int64_t numInFlight = 0;
  int numWorkers = 0;
  std::atomic<int> numAsleep{0};
  bool isOver = false;               ///< whoever sleeps has nothing left to do
  std::vector<Block *> parkedAsleep; ///< blocks of sleeping workers
  std::atomic<int64_t> errorPosition;
  std::string error;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_SCHEDULE_H
