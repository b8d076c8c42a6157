//===- Worker.h - Running blocks on one host thread -------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_WORKER_H
#define LOWLP_CPU_LIB_WORKER_H

#include "Block.h"

#include <map>

namespace lowlp {
namespace cpu {

/// Takes blocks from the schedule and runs each until it ends or is parked;
/// then it goes on with any that can.
class Worker {
public:
  /// `index` tells the workers of a launch apart.
  Worker(LaunchState &launch, int index);
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;
  ~Worker();

  /// Returns when no block is left that this worker could run.
  void run();

  /// Adds what the worker's blocks did, after `run`.
  void addTo(LaunchReport &report, std::map<std::string, SiteTraffic> &sites);

private:
  std::unique_ptr<Block> choose();
  std::unique_ptr<Block> startNext();
  void advance(std::unique_ptr<Block> block);
  void giveUp(std::unique_ptr<Block> block);
  void dropOvertaken();
  bool sleep();

  LaunchState &launch;
  Random random;
  std::unique_ptr<StackPool> stacks;
  std::vector<std::unique_ptr<Block>> parked; ///< in flight
  std::vector<std::unique_ptr<Block>> unused; ///< to be begun anew
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_WORKER_H
