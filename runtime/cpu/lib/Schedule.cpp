//===- Schedule.cpp - Which block starts when, and who sleeps -------------===//

#include "Schedule.h"

#include "Block.h"
#include "Order.h"

#include <algorithm>

using namespace lowlp::cpu;

int64_t BlockOrder::operator()(int64_t position) const {
  int64_t window = position / windowSize;
  int64_t begin = window * windowSize;
  Permutation inWindow(uint64_t(std::min(windowSize, numBlocks - begin)),
                       mixBits(seed) + uint64_t(window));
  return begin + int64_t(inWindow(uint64_t(position - begin)));
}

void Schedule::addWorker() {
  std::lock_guard<std::mutex> lock(mutex);
  ++numWorkers;
}

void Schedule::removeWorker() {
  std::lock_guard<std::mutex> lock(mutex);
  --numWorkers;
  // Those that sleep may now be all there are.
  ++generation;
  changed.notify_all();
}

bool Schedule::canTake() const {
  return nextPosition < errorPosition.load() && numInFlight < maxInFlight;
}

bool Schedule::takeNext(int64_t &position, int64_t &block) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!canTake())
    return false;
  ++numInFlight;
  position = nextPosition++;
  block = order(position);
  return true;
}

void Schedule::giveBack() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    --numInFlight;
  }
  wake();
}

bool Schedule::hasMore() {
  std::lock_guard<std::mutex> lock(mutex);
  return nextPosition < errorPosition.load();
}

void Schedule::record(int64_t position, const std::string &text) {
  if (position >= errorPosition.load())
    return;
  errorPosition.store(position);
  error = text;
}

void Schedule::fail(int64_t position, const std::string &text) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    record(position, text);
  }
  wake();
}

void Schedule::wakeAll() {
  std::lock_guard<std::mutex> lock(mutex);
  ++generation;
  changed.notify_all();
}

bool Schedule::sleep(const std::vector<Block *> &parked) {
  auto canGoOn = [](const Block *block) { return block->canGoOn(); };
  std::unique_lock<std::mutex> lock(mutex);
  // Whoever changes a word after the look at it below sees this and wakes us.
  ++numAsleep;
  parkedAsleep.insert(parkedAsleep.end(), parked.begin(), parked.end());
  uint64_t seen = generation;
  while (!isOver && !canTake() &&
         std::none_of(parked.begin(), parked.end(), canGoOn) &&
         (!parked.empty() || nextPosition < errorPosition.load()) &&
         std::all_of(parked.begin(), parked.end(), [&](const Block *block) {
           return matters(block->getPosition());
         })) {
    if (numAsleep.load() == numWorkers) {
      // Plain stores wake nobody, so look at the blocks of the others too.
      if (std::none_of(parkedAsleep.begin(), parkedAsleep.end(), canGoOn))
        endAsleep();
      ++generation;
      changed.notify_all();
      if (isOver)
        break;
      seen = generation;
    }
    changed.wait(lock, [&] { return generation != seen; });
    seen = generation;
  }
  --numAsleep;
  for (Block *block : parked)
    parkedAsleep.erase(
        std::find(parkedAsleep.begin(), parkedAsleep.end(), block));
  return !isOver;
}

/// Ends the launch, as no block can go on.
void Schedule::endAsleep() {
  isOver = true;
  if (errorPosition.load() < numBlocks)
    return; // they wait for the block that failed
  std::sort(parkedAsleep.begin(), parkedAsleep.end(),
            [](const Block *a, const Block *b) {
              return a->getIndex() < b->getIndex();
            });
  constexpr size_t maxListed = 8;
  std::string text = "deadlock: no block can go on; ";
  for (size_t i = 0; i < parkedAsleep.size() && i < maxListed; ++i)
    text += (i ? "; " : "") + parkedAsleep[i]->describeWaits();
  if (parkedAsleep.size() > maxListed)
    text += "; and " + std::to_string(parkedAsleep.size() - maxListed) +
            " more blocks";
  if (nextPosition < numBlocks)
    text += "; " + std::to_string(numBlocks - nextPosition) + " of " +
            std::to_string(numBlocks) +
            " blocks have not started: a block may only wait for blocks of "
            "lower index";
  record(0, text);
}
