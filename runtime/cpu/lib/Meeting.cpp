//===- Meeting.cpp - Barriers and collectives -----------------------------===//
//
// A thread that arrives waits for a set of threads: all of the block at a
// barrier, its warpgroup at a barrier of that (Warpgroup.cpp), the member lanes
// of its warp in a collective. Meetings are told apart by what the arrivals
// say, not by a table: lanes that agree form one.
//
// Lanes of one warp may be in different collectives at once as long as the
// member masks let them (half a warp may shuffle while the other half is ahead,
// waiting for the whole). What can never end well is two threads that each wait
// for the other at different places, or one that waits for an exited thread.
// Both are reported as soon as they come about.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include "Shuffle.h"

using namespace lowlp::cpu;

/// Splits the lowest lane off a mask that is not empty.
static int takeLowest(uint32_t &mask) {
  int lane = __builtin_ctz(mask);
  mask &= mask - 1;
  return lane;
}

void Block::meet(LowlpThread &thread) {
  if (!hold(thread))
    abandon();
  if (isComplete(thread)) {
    if (!takePlace(thread))
      abandon();
    // The last to arrive gets no head start over the others.
    release(thread);
  }
  suspend();
}

/// Makes the thread wait at its arrival. Returns false, with an error, if its
/// meeting can never take place.
bool Block::hold(LowlpThread &thread) {
  Warp &warp = warpOf(thread);
  bool barriersDiffer = false;
  if (thread.arrival.kind == MeetingKind::Barrier) {
    if (numAtBarrier++ == 0)
      barrierSite = thread.arrival.site;
    barriersDiffer = barrierSite != thread.arrival.site;
    thread.state = ThreadState::AtBarrier;
    warp.atBarrier |= thread.laneBit();
  } else {
    if (!warp.atCollective)
      warp.uniform = true;
    else if (warp.uniform)
      warp.uniform = neighbour(thread, __builtin_ctz(warp.atCollective))
                         .arrival.agreesWith(thread.arrival);
    thread.state = ThreadState::AtCollective;
    warp.atCollective |= thread.laneBit();
  }
  if (const LowlpThread *exited = findExited(thread)) {
    setExitError(*exited, thread.arrival);
    return false;
  }
  if (const LowlpThread *stray = findStrayWarp(thread)) {
    setStrayWarpError(thread, *stray);
    return false;
  }
  uint32_t conflict = lanesInConflict(thread);
  if (!conflict && !barriersDiffer)
    return true;
  setDivergenceError(thread, conflict);
  return false;
}

/// The lanes that wait in the same collective as `thread`, itself included.
uint32_t Block::lanesArrivedWith(const LowlpThread &thread) {
  const Warp &warp = warpOf(thread);
  if (warp.uniform)
    return warp.atCollective;
  uint32_t arrived = 0;
  for (uint32_t rest = warp.atCollective; rest;) {
    const LowlpThread &other = neighbour(thread, takeLowest(rest));
    if (other.arrival.agreesWith(thread.arrival))
      arrived |= other.laneBit();
  }
  return arrived;
}

/// The lanes that `thread` waits for and that wait for it, elsewhere.
uint32_t Block::lanesInConflict(const LowlpThread &thread) {
  const Warp &warp = warpOf(thread);
  bool atBarrier = thread.arrival.kind == MeetingKind::Barrier;
  uint32_t awaited = atBarrier ? warp.lanes : thread.arrival.members;
  uint32_t conflict = atBarrier ? 0 : awaited & warp.atBarrier;
  // Lanes that all agree, `thread` among them, are not in conflict.
  if (!atBarrier && warp.uniform)
    return conflict;
  for (uint32_t rest = warp.atCollective & awaited; rest;) {
    const LowlpThread &other = neighbour(thread, takeLowest(rest));
    if ((other.arrival.members & thread.laneBit()) &&
        !other.arrival.agreesWith(thread.arrival))
      conflict |= other.laneBit();
  }
  return conflict;
}

/// A thread that has exited though `waiting` waits for it, or null.
const LowlpThread *Block::findExited(const LowlpThread &waiting) {
  if (numExited == 0)
    return nullptr;
  if (isOfWarpgroup(waiting.arrival.kind))
    return findExitedInGroup(waiting);
  if (waiting.arrival.kind != MeetingKind::Barrier) {
    uint32_t exited = warpOf(waiting).exited & waiting.arrival.members;
    return exited ? &neighbour(waiting, takeLowest(exited)) : nullptr;
  }
  for (const LowlpThread &thread : threads)
    if (thread.state == ThreadState::Exited && !thread.hasLeft)
      return &thread;
  return nullptr;
}

/// A thread that waits for `exited` though it has exited, or null.
const LowlpThread *Block::findWaitingFor(const LowlpThread &exited) {
  if (numAtBarrier > 0 && !exited.hasLeft)
    for (const LowlpThread &thread : threads)
      if (thread.state == ThreadState::AtBarrier)
        return &thread;
  for (uint32_t rest = warpOf(exited).atCollective; rest;) {
    const LowlpThread &other = neighbour(exited, takeLowest(rest));
    if (other.arrival.members & exited.laneBit())
      return &other;
  }
  return findGroupWithout(exited);
}

/// Whether everyone whom `thread` waits for is there.
bool Block::isComplete(const LowlpThread &thread) {
  if (thread.arrival.kind == MeetingKind::Barrier)
    return size_t(numAtBarrier + numLeft) == threads.size();
  if (isOfWarpgroup(thread.arrival.kind))
    return isWarpgroupComplete(thread);
  return lanesArrivedWith(thread) == thread.arrival.members;
}

/// Carries out the complete meeting of `thread`. Returns false on an error.
bool Block::takePlace(LowlpThread &thread) {
  switch (thread.arrival.kind) {
  case MeetingKind::Barrier:
    ++counters.barriers;
    ++epoch;
    if (order)
      order->joinAll();
    passBarrier();
    return true;
  case MeetingKind::Mma:
    multiply(thread);
    return true;
  case MeetingKind::Shuffle:
    return exchange(thread);
  case MeetingKind::LoadMatrix:
  case MeetingKind::StoreMatrix:
    return moveMatrices(thread);
  case MeetingKind::WarpgroupBarrier:
  case MeetingKind::Wgmma:
  case MeetingKind::WgmmaFence:
  case MeetingKind::WgmmaCommit:
  case MeetingKind::WgmmaWait:
    return joinWarpgroup(thread);
  case MeetingKind::Mbarrier:
  case MeetingKind::Word:
    break; // No meetings.
  }
  return true;
}

void Block::multiply(const LowlpThread &thread) {
  MmaOperands lanes[lanesPerWarp];
  for (int lane = 0; lane < lanesPerWarp; ++lane)
    lanes[lane] = neighbour(thread, lane).arrival.mma;
  multiplyMatrices(thread.arrival.mode, lanes);
  ++counters.mmas;
}

bool Block::exchange(const LowlpThread &thread) {
  const uint32_t members = thread.arrival.members;
  for (uint32_t rest = members; rest;) {
    LowlpThread &reader = neighbour(thread, takeLowest(rest));
    ShuffleOperands &operands = reader.arrival.shuffle;
    ShuffleSource source =
        shuffleSource(thread.arrival.mode, reader.lane(), operands.laneOrDelta,
                      operands.clampAndMask);
    if (!(members >> source.lane & 1)) {
      setError(reader, reader.arrival.site,
               "lane " + std::to_string(reader.lane()) + " reads lane " +
                   std::to_string(source.lane) +
                   ", which takes no part in the shuffle");
      return false;
    }
    operands.result = neighbour(thread, source.lane).arrival.shuffle.value;
    operands.inRange = source.inRange;
  }
  ++counters.shuffles;
  return true;
}

/// Lets the members of a collective in the warp of `thread` go on.
void Block::releaseWarp(const LowlpThread &thread) {
  warpOf(thread).atCollective &= ~thread.arrival.members;
  if (order)
    order->sharePhases(thread.warpIndex() * lanesPerWarp,
                       thread.arrival.members);
  for (uint32_t rest = thread.arrival.members; rest;)
    makeReady(neighbour(thread, takeLowest(rest)));
}

/// Lets everyone in the meeting of `thread` go on.
void Block::release(const LowlpThread &thread) {
  if (isOfWarpgroup(thread.arrival.kind)) {
    int32_t first = firstWarpOfGroup(thread);
    for (int32_t warp = first; warp < first + warpsPerGroup; ++warp)
      releaseWarp(threads[size_t(warp * lanesPerWarp)]);
    return;
  }
  if (thread.arrival.kind != MeetingKind::Barrier) {
    releaseWarp(thread);
    return;
  }
  numAtBarrier = 0;
  for (Warp &warp : warps)
    warp.atBarrier = 0;
  for (LowlpThread &other : threads)
    if (!other.hasLeft)
      makeReady(other);
}

void Block::leaveBarriers(LowlpThread &thread) {
  if (thread.hasLeft)
    return;
  thread.hasLeft = true;
  ++numLeft;
  // The others may have waited for nobody else.
  for (LowlpThread &other : threads)
    if (other.state == ThreadState::AtBarrier) {
      if (!isComplete(other))
        return;
      if (!takePlace(other))
        abandon();
      release(other);
      return;
    }
}
