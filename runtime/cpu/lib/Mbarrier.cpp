//===- Mbarrier.cpp - Barriers in shared memory that count bytes ----------===//
//
// A thread that waits for a phase is parked until the phase is complete. Bulk
// copies land as late as they may: when no thread of the block can run, one
// that somebody waits for is chosen at random.
//
//===----------------------------------------------------------------------===//

#include "Mbarrier.h"

#include "Block.h"

using namespace lowlp::cpu;

std::string Mbarrier::describe() const {
  return "the mbarrier at byte offset " + std::to_string(byteOffset);
}

std::string Mbarrier::describeMissing() const {
  std::string text = "phase " + std::to_string(phase) + " lacks " +
                     std::to_string(missing) + " of " +
                     std::to_string(arrivals) + " arrivals";
  if (missingBytes > 0)
    text += " and " + std::to_string(missingBytes) + " bytes";
  if (missingBytes < 0)
    text += ", and " + std::to_string(-missingBytes) +
            " bytes came that no arrival announced";
  return text;
}

int64_t Block::checkMbarrierPlace(LowlpThread &thread, void *base,
                                  int64_t byteOffset, const char *site) {
  trackOrder();
  Access access = {base, byteOffset, Mbarrier::bytes, Mbarrier::bytes,
                   AtomicUpdate};
  const Place *place = memory.find(access, site);
  if (place && memory.isShared(*place))
    return place->offsetOf(access);
  setError(thread, site,
           place ? "an mbarrier lies in shared memory"
                 : memory.explain(access));
  abandon();
}

Mbarrier &Block::findMbarrier(LowlpThread &thread, void *base,
                              int64_t byteOffset, const char *site) {
  int64_t offset = checkMbarrierPlace(thread, base, byteOffset, site);
  auto found = mbarriers.find(offset);
  if (found == mbarriers.end()) {
    setError(thread, site,
             "there is no mbarrier at byte offset " + std::to_string(offset) +
                 " of shared memory: nothing has initialised one");
    abandon();
  }
  Mbarrier &barrier = found->second;
  if (order && !order->hasSeen(thread.index, uint16_t(barrier.initThread),
                               barrier.initTime)) {
    setError(thread, site,
             barrier.describe() +
                 " is not there yet for this thread: no barrier lies between "
                 "this and its initialisation by thread " +
                 toString(threads[size_t(barrier.initThread)].position));
    abandon();
  }
  return barrier;
}

void Block::initMbarrier(LowlpThread &thread, void *base, int64_t byteOffset,
                         int64_t arrivals, const char *site) {
  int64_t offset = checkMbarrierPlace(thread, base, byteOffset, site);
  if (arrivals < 1 || arrivals > Mbarrier::maxCount) {
    setError(thread, site,
             "an mbarrier takes 1 to " + std::to_string(Mbarrier::maxCount) +
                 " arrivals, not " + std::to_string(arrivals));
    abandon();
  }
  if (mbarriers.count(offset)) {
    setError(thread, site,
             mbarriers.at(offset).describe() + " is initialised already");
    abandon();
  }
  if (order) {
    Access access = {base, byteOffset, Mbarrier::bytes, Mbarrier::bytes,
                     PlainWrite};
    checkAccess(thread, access, site, /*usesValue=*/false);
    pending.addMbarrier(offset);
  }
  Mbarrier &barrier = mbarriers[offset];
  barrier.number = order ? order->addMbarrier() : int32_t(mbarriers.size()) - 1;
  barrier.byteOffset = offset;
  barrier.arrivals = barrier.missing = int32_t(arrivals);
  barrier.missingBytes = 0;
  barrier.initThread = thread.index;
  barrier.initTime = order ? order->getTime() : 0;
}

void Block::fenceMbarrierInit(const LowlpThread &thread) {
  for (auto &[offset, barrier] : mbarriers)
    barrier.isFenced |= barrier.initThread == thread.index;
}

void Block::fenceAsync(const LowlpThread &thread) {
  trackOrder();
  if (!order)
    return;
  for (auto &[offset, barrier] : mbarriers)
    barrier.isFenced |= order->hasSeen(
        thread.index, uint16_t(barrier.initThread), barrier.initTime);
  order->fence(thread.index);
}

void Block::arriveAtMbarrier(LowlpThread &thread, Mbarrier &barrier,
                             int64_t expectedBytes, const char *site) {
  if (barrier.missing == 0) {
    setError(thread, site,
             "one arrival too many: all " + std::to_string(barrier.arrivals) +
                 " arrivals of phase " + std::to_string(barrier.phase) +
                 " of " + barrier.describe() + " have come, and " +
                 std::to_string(barrier.missingBytes) +
                 " bytes are still missing");
    abandon();
  }
  barrier.missingBytes += expectedBytes;
  if (barrier.missingBytes > Mbarrier::maxCount) {
    setError(thread, site,
             barrier.describe() + " would expect " +
                 std::to_string(barrier.missingBytes) +
                 " bytes; it counts at most " +
                 std::to_string(Mbarrier::maxCount));
    abandon();
  }
  if (order)
    order->release(thread.index, barrier.released);
  barrier.releasedOfOthers.add(thread.acquired);
  --barrier.missing;
  if (!completePhase(thread, barrier, site))
    abandon();
}

/// Begins the next phase if the current one is complete. Returns false, with an
/// error, if it never can be.
bool Block::completePhase(const LowlpThread &thread, Mbarrier &barrier,
                          const char *site) {
  if (barrier.missing > 0 || barrier.missingBytes > 0)
    return true;
  if (barrier.missingBytes < 0) {
    setError(thread, site,
             "more bytes than announced: all arrivals of phase " +
                 std::to_string(barrier.phase) + " of " + barrier.describe() +
                 " have come, and so have " +
                 std::to_string(-barrier.missingBytes) +
                 " bytes that none of them announced");
    return false;
  }
  ++barrier.phase;
  barrier.missing = barrier.arrivals;
  std::swap(barrier.completed, barrier.released);
  barrier.released = Sight();
  std::swap(barrier.completedOfOthers, barrier.releasedOfOthers);
  barrier.releasedOfOthers.clear();
  if (order)
    order->completePhase(barrier.number, barrier.phase, barrier.completed);
  for (int32_t waiting : barrier.waiting) {
    passOn(threads[size_t(waiting)], barrier);
    makeReady(threads[size_t(waiting)]);
  }
  barrier.waiting.clear();
  return true;
}

/// Lets a thread see what was released to the phase before the current one.
void Block::passOn(LowlpThread &thread, const Mbarrier &barrier) {
  if (order)
    order->acquire(thread.index, barrier.completed);
  thread.acquired.add(barrier.completedOfOthers);
}

/// Reports a wait whose parity stands for one phase or another, depending on
/// how far the mbarrier has come without this thread.
void Block::checkParity(const LowlpThread &thread, const Mbarrier &barrier,
                        int32_t parity, const char *site) {
  int64_t known = order->knownPhases(thread.index, barrier.number);
  int64_t meant = (known & 1) == parity ? known : known - 1;
  if (barrier.phase <= meant + 1)
    return;
  std::string what = meant < 0 ? std::string("the phase before the first")
                               : "phase " + std::to_string(meant);
  setError(thread, site,
           "phase misuse: this thread knows of " + std::to_string(known) +
               " complete phases of " + barrier.describe() +
               ", so that parity " + std::to_string(parity) + " means " + what +
               "; but the mbarrier is in phase " +
               std::to_string(barrier.phase) + ", more than one ahead");
  abandon();
}

void Block::waitForMbarrier(LowlpThread &thread, Mbarrier &barrier,
                            int32_t parity, const char *site) {
  parity &= 1;
  if (order)
    checkParity(thread, barrier, parity, site);
  if (int32_t(barrier.phase & 1) != parity) {
    passOn(thread, barrier);
    return;
  }
  thread.arrival.kind = MeetingKind::Mbarrier;
  thread.arrival.mode = barrier.number;
  thread.arrival.site = site;
  thread.arrival.members = 0;
  thread.arrival.mbarrier = &barrier;
  thread.state = ThreadState::AtMbarrier;
  barrier.waiting.push_back(thread.index);
  suspend();
}

bool Block::landAwaitedCopy() {
  size_t numAwaited = 0;
  for (auto &[offset, barrier] : mbarriers)
    if (!barrier.waiting.empty())
      numAwaited += barrier.copies.size();
  if (numAwaited == 0)
    return false;
  size_t pick = random.below(uint32_t(numAwaited));
  for (auto &[offset, barrier] : mbarriers) {
    if (barrier.waiting.empty())
      continue;
    if (pick >= barrier.copies.size()) {
      pick -= barrier.copies.size();
      continue;
    }
    PendingCopies::Number copy = barrier.copies[pick];
    barrier.copies[pick] = barrier.copies.back();
    barrier.copies.pop_back();
    landBulkCopy(barrier, copy);
    return true;
  }
  return false;
}

/// Reports a bulk copy that was still in flight when the block ended.
void Block::checkAllLanded() {
  for (auto &[offset, barrier] : mbarriers) {
    if (barrier.copies.empty())
      continue;
    const PendingCopy &copy = pending.get(barrier.copies.front());
    setError(threads[size_t(copy.thread)], copy.site,
             "the block ended before the bytes of this copy were waited for "
             "at " +
                 barrier.describe());
    return;
  }
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

void lowlpCpuTrackOrder(LowlpThread *thread) { thread->block->trackOrder(); }

void lowlpCpuMbarrierInit(LowlpThread *thread, void *base, int64_t byteOffset,
                          int64_t arrivals, const char *site) {
  thread->block->initMbarrier(*thread, base, byteOffset, arrivals, site);
}

void lowlpCpuFenceMbarrierInit(LowlpThread *thread) {
  thread->block->fenceMbarrierInit(*thread);
}

void lowlpCpuMbarrierArrive(LowlpThread *thread, void *base, int64_t byteOffset,
                            int64_t expectedBytes, const char *site) {
  Block &block = *thread->block;
  block.arriveAtMbarrier(*thread,
                         block.findMbarrier(*thread, base, byteOffset, site),
                         expectedBytes, site);
}

void lowlpCpuMbarrierWait(LowlpThread *thread, void *base, int64_t byteOffset,
                          int32_t parity, const char *site) {
  Block &block = *thread->block;
  block.waitForMbarrier(*thread,
                        block.findMbarrier(*thread, base, byteOffset, site),
                        parity, site);
}

void lowlpCpuFenceAsync(LowlpThread *thread) {
  thread->block->fenceAsync(*thread);
}
