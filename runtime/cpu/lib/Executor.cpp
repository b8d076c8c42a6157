//===- Executor.cpp - Launches --------------------------------------------===//
//
// Workers take positions in the seed's order of blocks from one counter and run
// the block at each. The error reported is the one of the lowest position, not
// the first in time: positions before it were handed out earlier and are run to
// their end, so the report does not depend on how fast the workers are.
//
//===----------------------------------------------------------------------===//

#include "lowlp/CPU/Executor.h"

#include "Block.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <mutex>
#include <system_error>
#include <thread>

using namespace lowlp::cpu;

namespace {

constexpr int64_t maxThreadsPerBlock = 1024;

// A stack and its guard are two mappings; Linux allows 65530 per process.
constexpr int64_t maxStacks = 16384;

/// The state that the workers of one launch share.
class Launch {
public:
  Launch(const LaunchConfig &config, int64_t numBlocks)
      : state(config), order(uint64_t(numBlocks), config.seed),
        errorPosition(numBlocks) {
    if (!state.memory.isValid())
      record(-1, "launch: no memory for the checks of races and "
                 "uninitialised reads");
  }

  /// Runs blocks until none is left or one has failed.
  void work();

  /// The outcome, after all workers are done.
  LaunchReport takeReport();

private:
  void record(int64_t position, const std::string &error);
  void add(const LaunchCounters &counters);
  void add(const std::map<std::string, SiteTraffic> &totals);

  LaunchState state;
  const Permutation order;
  std::atomic<int64_t> nextPosition{0};
  std::atomic<int64_t> errorPosition; ///< of the first error; written locked
  std::mutex mutex;
  std::map<std::string, SiteTraffic> sites; ///< guarded by `mutex`
  LaunchReport report; ///< guarded by `mutex` until the workers are done
};

/// IEEE arithmetic, with subnormals, whatever mode the host program is in.
/// Fibers take it over from the thread that makes them.
class DefaultFloatMode {
public:
  DefaultFloatMode() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatMode() { std::fesetenv(&saved); }

private:
  std::fenv_t saved;
};

} // namespace

void Launch::work() {
  DefaultFloatMode floatMode;
  std::unique_ptr<StackPool> stacks = acquireStackPool();
  {
    Block block(state, *stacks);
    for (;;) {
      int64_t position = nextPosition.fetch_add(1, std::memory_order_relaxed);
      if (position >= errorPosition.load(std::memory_order_relaxed))
        break;
      if (!block.run(int64_t(order(uint64_t(position)))))
        record(position, block.getError());
    }
    add(block.counters);
    if (block.traffic)
      add(block.traffic->takeTotals());
  }
  releaseStackPool(std::move(stacks));
}

void Launch::record(int64_t position, const std::string &error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (position >= errorPosition.load(std::memory_order_relaxed))
    return;
  errorPosition.store(position, std::memory_order_relaxed);
  report.error = error;
}

void Launch::add(const LaunchCounters &counters) {
  std::lock_guard<std::mutex> lock(mutex);
  report.loads += counters.loads;
  report.stores += counters.stores;
  report.bytesLoaded += counters.bytesLoaded;
  report.bytesStored += counters.bytesStored;
  report.mmas += counters.mmas;
  report.barriers += counters.barriers;
  report.shuffles += counters.shuffles;
  report.atomics += counters.atomics;
  report.blocks += counters.blocks;
  report.ok = report.error.empty();
}

void Launch::add(const std::map<std::string, SiteTraffic> &totals) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[site, total] : totals)
    sites[site] += total;
}

LaunchReport Launch::takeReport() {
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
  Launch launch(config, numBlocks);
  std::vector<std::thread> workers;
  workers.reserve(size_t(numWorkers));
  for (int64_t i = 1; i < numWorkers; ++i) {
    try {
      workers.emplace_back([&launch] { launch.work(); });
    } catch (const std::system_error &) {
      // The system gives no more threads: those there are do the work.
      break;
    }
  }
  // The calling thread is a worker as well.
  launch.work();
  for (std::thread &worker : workers)
    worker.join();
  return launch.takeReport();
}
