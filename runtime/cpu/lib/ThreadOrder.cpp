//===- ThreadOrder.cpp - What mbarriers order within a block --------------===//

#include "ThreadOrder.h"

using namespace lowlp::cpu;

void ThreadOrder::joinMax(std::vector<uint32_t> &to,
                          const std::vector<uint32_t> &from) {
  if (to.size() < from.size())
    to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = std::max(to[i], from[i]);
}

void Sight::join(const Sight &other) {
  ThreadOrder::joinMax(seen, other.seen);
  ThreadOrder::joinMax(fenced, other.fenced);
  ThreadOrder::joinMax(phases, other.phases);
  fencedBelow = std::max(fencedBelow, other.fencedBelow);
}

void ThreadOrder::reset(int32_t numThreads) {
  this->numThreads = numThreads;
  numMbarriers = 0;
  now = 1;
  seenByAll = 0;
  allFenced = Sight();
  sights.assign(size_t(numThreads), Sight());
  phasesByAtomics.clear();
}

void ThreadOrder::release(int32_t thread, Sight &sight) {
  Sight &own = sights[size_t(thread)];
  raise(own.seen, size_t(thread), now);
  sight.join(own);
  ++now;
}

void ThreadOrder::completePhase(int32_t mbarrier, uint32_t numPhases,
                                Sight &sight) {
  raise(sight.seen, componentOf(mbarrier), now);
  raise(sight.phases, size_t(mbarrier), numPhases);
  ++now;
}

void ThreadOrder::acquire(int32_t thread, const Sight &sight) {
  sights[size_t(thread)].join(sight);
}

void ThreadOrder::fence(int32_t thread) {
  Sight &own = sights[size_t(thread)];
  raise(own.seen, size_t(thread), now);
  joinMax(own.fenced, own.seen);
  own.fencedBelow = std::max(own.fencedBelow, seenByAll);
  ++now;
}

void ThreadOrder::joinAll() {
  for (Sight &sight : sights) {
    joinMax(allFenced.fenced, sight.fenced);
    joinMax(allFenced.phases, sight.phases);
    allFenced.fencedBelow = std::max(allFenced.fencedBelow, sight.fencedBelow);
    // All of it is known to everybody now.
    sight = Sight();
  }
  seenByAll = now++;
}

void ThreadOrder::join(int32_t first, int32_t end) {
  Sight together;
  for (int32_t thread = first; thread < end; ++thread)
    release(thread, together);
  for (int32_t thread = first; thread < end; ++thread)
    acquire(thread, together);
}

void ThreadOrder::sharePhases(int32_t firstThread, uint32_t lanes) {
  std::vector<uint32_t> together;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    joinMax(together, sights[size_t(firstThread + __builtin_ctz(rest))].phases);
  if (together.empty())
    return;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    joinMax(sights[size_t(firstThread + __builtin_ctz(rest))].phases, together);
}

void ThreadOrder::sharePhasesByAtomic(int32_t thread) {
  joinMax(phasesByAtomics, sights[size_t(thread)].phases);
  joinMax(sights[size_t(thread)].phases, phasesByAtomics);
}
