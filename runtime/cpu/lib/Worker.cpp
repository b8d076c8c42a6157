//===- Worker.cpp - Running blocks on one host thread ---------------------===//

#include "Worker.h"

#include <algorithm>
#include <cfenv>

using namespace lowlp::cpu;

namespace {

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

Worker::Worker(LaunchState &launch, int index)
    : launch(launch), random(mixBits(launch.config.seed) + uint64_t(index)),
      stacks(acquireStackPool(chooseStackBytes(launch.config.stackBytes))) {
  launch.schedule.addWorker();
}

Worker::~Worker() {
  parked.clear();
  unused.clear();
  stacks->trim();
  releaseStackPool(std::move(stacks));
}

void Worker::run() {
  DefaultFloatMode floatMode;
  for (;;) {
    dropOvertaken();
    if (std::unique_ptr<Block> block = choose())
      advance(std::move(block));
    else if ((parked.empty() && !launch.schedule.hasMore()) || !sleep())
      break;
  }
  for (std::unique_ptr<Block> &block : parked)
    giveUp(std::move(block));
  parked.clear();
  launch.schedule.removeWorker();
}

/// A parked block that can go on or a new one, at random; null if there is
/// neither.
std::unique_ptr<Block> Worker::choose() {
  std::vector<size_t> runnable;
  for (size_t i = 0; i < parked.size(); ++i)
    if (parked[i]->canGoOn())
      runnable.push_back(i);
  auto numRunnable = uint32_t(runnable.size());
  uint32_t pick = random.below(numRunnable + 1);
  if (pick == numRunnable) {
    if (std::unique_ptr<Block> block = startNext())
      return block;
    if (runnable.empty())
      return nullptr;
    pick = random.below(numRunnable);
  }
  std::swap(parked[runnable[pick]], parked.back());
  std::unique_ptr<Block> block = std::move(parked.back());
  parked.pop_back();
  return block;
}

std::unique_ptr<Block> Worker::startNext() {
  int64_t position, index;
  if (!launch.schedule.takeNext(position, index))
    return nullptr;
  std::unique_ptr<Block> block;
  if (unused.empty()) {
    block = std::make_unique<Block>(launch, *stacks);
  } else {
    block = std::move(unused.back());
    unused.pop_back();
  }
  block->begin(index, position);
  return block;
}

void Worker::advance(std::unique_ptr<Block> block) {
  switch (block->advance()) {
  case BlockState::Parked:
    parked.push_back(std::move(block));
    return;
  case BlockState::Failed:
    launch.schedule.fail(block->getPosition(), block->getError());
    break;
  case BlockState::Finished:
    break;
  }
  giveUp(std::move(block));
}

/// Keeps the object for another block.
void Worker::giveUp(std::unique_ptr<Block> block) {
  block->drop();
  unused.push_back(std::move(block));
  launch.schedule.giveBack();
}

/// Gives up blocks that come after one that failed.
void Worker::dropOvertaken() {
  for (size_t i = 0; i < parked.size();) {
    if (launch.schedule.matters(parked[i]->getPosition())) {
      ++i;
      continue;
    }
    std::swap(parked[i], parked.back());
    giveUp(std::move(parked.back()));
    parked.pop_back();
  }
}

bool Worker::sleep() {
  std::vector<Block *> blocks;
  for (const std::unique_ptr<Block> &block : parked)
    blocks.push_back(block.get());
  return launch.schedule.sleep(blocks);
}

void Worker::addTo(LaunchReport &report,
                   std::map<std::string, SiteTraffic> &sites) {
  for (const std::unique_ptr<Block> &block : unused) {
    const LaunchCounters &counters = block->counters;
    report.loads += counters.loads;
    report.stores += counters.stores;
    report.bytesLoaded += counters.bytesLoaded;
    report.bytesStored += counters.bytesStored;
    report.mmas += counters.mmas;
    report.barriers += counters.barriers;
    report.shuffles += counters.shuffles;
    report.atomics += counters.atomics;
    report.blocks += counters.blocks;
    if (!block->traffic)
      continue;
    for (const auto &[site, total] : block->traffic->takeTotals())
      sites[site] += total;
  }
}
