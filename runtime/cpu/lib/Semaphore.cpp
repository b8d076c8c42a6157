//===- Semaphore.cpp - Waits for words, and what they make known ----------===//

#include "Block.h"

#include <algorithm>

using namespace lowlp::cpu;

static bool hasArrived(const LowlpThread &thread) {
  const AwaitedWord &awaited = thread.arrival.awaited;
  return __atomic_load_n(awaited.word, __ATOMIC_SEQ_CST) == awaited.value;
}

void Block::await(LowlpThread &thread, const uint32_t *word, uint32_t wanted,
                  const char *site) {
  for (;;) {
    bool isThere = false;
    launch.published.at(word, [&](const Knowledge &published) {
      isThere = __atomic_load_n(word, __ATOMIC_SEQ_CST) == wanted;
      if (isThere)
        thread.acquired.add(published);
    });
    if (isThere)
      return;
    Arrival &arrival = thread.arrival;
    arrival.kind = MeetingKind::Word;
    arrival.mode = 0;
    arrival.site = site;
    arrival.members = 0;
    arrival.awaited = {word, wanted};
    thread.state = ThreadState::AtWord;
    awaiting.push_back(thread.index);
    suspend();
  }
}

// An add continues what others began to publish through the word, a store
// begins anew (PTX ISA, "Memory Consistency Model: Release and Acquire
// Patterns").
uint32_t Block::publish(LowlpThread &thread, int32_t op, uint32_t *word,
                        uint32_t operand) {
  uint32_t old = 0;
  launch.published.at(word, [&](Knowledge &published) {
    if (op == LowlpAtomicExch)
      published.clear();
    published.add(known);
    published.add(thread.acquired);
    published.addBlock(number, epochTime);
    published.addThread(number, uint16_t(thread.index), time + 1);
    // What mbarriers showed it of other threads goes along. How much of each
    // that was is not dated in the block's time, so all of it does.
    for (const LowlpThread &other : threads)
      if (order && order->mayHaveSeen(thread.index, uint16_t(other.index)))
        published.addThread(number, uint16_t(other.index), time + 1);
    old = changeWord(op, word, operand);
  });
  // What comes after the release is not published by it.
  ++time;
  return old;
}

/// Begins a new epoch, in which all threads know what each of them knew.
void Block::passBarrier() {
  epochTime = ++time;
  for (LowlpThread &thread : threads) {
    if (thread.acquired.isEmpty())
      continue;
    known.add(thread.acquired);
    thread.acquired.clear();
  }
}

/// Lets the threads go on whose word has arrived.
void Block::wakeArrived() {
  for (size_t i = 0; i < awaiting.size();) {
    LowlpThread &thread = threads[size_t(awaiting[i])];
    if (!hasArrived(thread)) {
      ++i;
      continue;
    }
    makeReady(thread);
    awaiting[i] = awaiting.back();
    awaiting.pop_back();
  }
}

bool Block::canGoOn() const {
  return std::any_of(awaiting.begin(), awaiting.end(), [&](int32_t index) {
    return hasArrived(threads[size_t(index)]);
  });
}

std::string Block::describeWaits() const {
  constexpr size_t maxListed = 4;
  std::string text = "block " + toString(position);
  for (size_t i = 0; i < awaiting.size() && i < maxListed; ++i) {
    const LowlpThread &thread = threads[size_t(awaiting[i])];
    const AwaitedWord &awaited = thread.arrival.awaited;
    text += std::string(i ? ", thread " : ": thread ") +
            toString(thread.position) + " at " + thread.arrival.site +
            " waits for " + std::to_string(awaited.value) + " at " +
            memory.describeAddress(awaited.word) + ", which holds " +
            std::to_string(__atomic_load_n(awaited.word, __ATOMIC_SEQ_CST));
  }
  if (awaiting.size() > maxListed)
    text += ", and " + std::to_string(awaiting.size() - maxListed) +
            " more threads";
  return text;
}
