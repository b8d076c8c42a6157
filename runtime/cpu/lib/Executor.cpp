//===- Executor.cpp - Launches --------------------------------------------===//
//
// A launch is a schedule of blocks and the workers that run them, each on a
// host thread. The calling thread is one of them, or, where the launch may be
// stopped, watches: asking whether to stop may run code of the host program,
// which must not happen on the stack of a fiber.
//
//===----------------------------------------------------------------------===//

#include "lowlp/CPU/Executor.h"

#include "Worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

using namespace lowlp::cpu;

namespace {

constexpr int64_t maxThreadsPerBlock = 1024;

// What no register file or local memory of a GPU thread comes near.
constexpr int64_t maxStackBytes = int64_t(1) << 30;

constexpr std::chrono::milliseconds askInterval(50);

// A stack and its guard are two mappings; Linux allows 65530 per process.
constexpr int64_t maxStacks = 16384;

/// Blocks are started in windows of so many, see Schedule.h: less only where
/// their threads would take up half of the stacks.
int64_t chooseWindowSize(int64_t numThreads) {
  return std::min<int64_t>(16, maxStacks / 2 / numThreads);
}

/// So many blocks may wait for others of their cluster in windows before: of a
/// cluster of at most 8 one has not started.
constexpr int64_t maxWaitingOfCluster = 7;

/// The state that the workers of one launch share.
class Launch {
public:
  Launch(const LaunchConfig &config, int64_t numBlocks, int64_t numThreads,
         int64_t numWorkers)
      : schedule(
            BlockOrder(numBlocks, chooseWindowSize(numThreads), config.seed),
            numBlocks,
            std::max(numWorkers,
                     chooseWindowSize(numThreads) + maxWaitingOfCluster)),
        state(config, schedule) {
    if (!state.memory.isValid())
      schedule.fail(-1, "launch: no memory for the checks of races and "
                        "uninitialised reads");
  }

  /// Runs blocks until none is left or one has failed.
  void work();

  /// Waits until `numStarted` workers are done, and stops them if the
  /// configuration says so.
  void watch(size_t numStarted);

  /// The outcome, after all workers are done.
  LaunchReport takeReport();

private:
  Schedule schedule;
  LaunchState state;
  std::atomic<int> numWorkers{0};
  std::mutex mutex;
  std::condition_variable changed;
  size_t numDone = 0;                       ///< workers; guarded by `mutex`
  std::map<std::string, SiteTraffic> sites; ///< guarded by `mutex`
  LaunchReport report; ///< guarded by `mutex` until the workers are done
};

} // namespace

void Launch::work() {
  Worker worker(state, numWorkers++);
  worker.run();
  std::lock_guard<std::mutex> lock(mutex);
  worker.addTo(report, sites);
  ++numDone;
  changed.notify_all();
}

void Launch::watch(size_t numStarted) {
  std::unique_lock<std::mutex> lock(mutex);
  auto allDone = [&] { return numDone == numStarted; };
  while (!changed.wait_for(lock, askInterval, allDone)) {
    lock.unlock();
    const LaunchConfig &config = state.config;
    bool stops = config.shouldStop(config.shouldStopData) != 0;
    if (stops)
      schedule.fail(-1, "launch: stopped by the caller");
    lock.lock();
    if (stops)
      changed.wait(lock, allDone);
  }
}

LaunchReport Launch::takeReport() {
  report.error = schedule.getError();
  report.ok = report.error.empty();
  for (auto &[site, total] : sites) {
    total.site = site;
    report.sites.push_back(total);
  }
  return std::move(report);
}

/// The product of the extents, or 0 if one is not positive or the product is
/// above `limit`.
static int64_t countWithin(const int64_t extents[3], int64_t limit) {
  int64_t count = 1;
  for (int dim = 0; dim < 3; ++dim) {
    if (extents[dim] <= 0 || extents[dim] > limit / count)
      return 0;
    count *= extents[dim];
  }
  return count;
}

/// What is wrong with a configuration, or nothing.
static std::string explainInvalid(const LaunchConfig &config) {
  if (!config.kernel)
    return "launch: the kernel is null";
  if (!countWithin(config.grid, INT64_MAX >> 2))
    return "launch: grid " +
           toString({{config.grid[0], config.grid[1], config.grid[2]}}) +
           " has no blocks, or too many";
  if (!countWithin(config.block, maxThreadsPerBlock))
    return "launch: block " +
           toString({{config.block[0], config.block[1], config.block[2]}}) +
           " must have 1 to " + std::to_string(maxThreadsPerBlock) + " threads";
  if (config.stackBytes < 0 || config.stackBytes > maxStackBytes)
    return "launch: each thread of the kernel takes a stack of " +
           std::to_string(config.stackBytes) + " bytes, but at most " +
           std::to_string(maxStackBytes) + " are allowed";
  if (config.sharedBytes < 0)
    return "launch: shared memory of " + std::to_string(config.sharedBytes) +
           " bytes";
  if (config.checks & ~uint32_t(LowlpCheckAll))
    return "launch: there are no checks " + std::to_string(config.checks);
  if (config.countsSites && !config.checks)
    return "launch: counts by op need the check of bounds";
  if (config.workers < 0)
    return "launch: " + std::to_string(config.workers) + " workers";
  for (const Allocation &allocation : config.allocations)
    if (allocation.bytes < 0)
      return "launch: argument '" +
             std::string(allocation.name ? allocation.name : "") + "' has " +
             std::to_string(allocation.bytes) + " bytes";
  return "";
}

static int64_t chooseNumWorkers(const LaunchConfig &config, int64_t numBlocks,
                                int64_t numThreads) {
  int64_t numWorkers = config.workers;
  if (numWorkers == 0)
    numWorkers = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return std::min({numWorkers, numBlocks, maxStacks / numThreads});
}

LaunchReport lowlp::cpu::launch(const LaunchConfig &config) {
  std::string invalid = explainInvalid(config);
  if (!invalid.empty()) {
    LaunchReport report;
    report.error = invalid;
    return report;
  }
  int64_t numBlocks = countWithin(config.grid, INT64_MAX >> 2);
  int64_t numThreads = countWithin(config.block, maxThreadsPerBlock);
  int64_t numWorkers = chooseNumWorkers(config, numBlocks, numThreads);
  Launch launch(config, numBlocks, numThreads, numWorkers);
  std::vector<std::thread> workers;
  workers.reserve(size_t(numWorkers));
  for (int64_t i = config.shouldStop ? 0 : 1; i < numWorkers; ++i) {
    try {
      workers.emplace_back([&launch] { launch.work(); });
    } catch (const std::system_error &) {
      // The system gives no more threads: those there are do the work.
      break;
    }
  }
  if (config.shouldStop && !workers.empty())
    launch.watch(workers.size());
  else
    launch.work();
  for (std::thread &worker : workers)
    worker.join();
  return launch.takeReport();
}
