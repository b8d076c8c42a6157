//===- AsyncCopies.cpp - Copies that land later ---------------------------===//
//
// With the check of races on, a copy is only noted down when it is issued
// (PendingCopies.h), and lands as late as it may:
//
//   cp.async            at the wait of its thread that covers its group
//   to global memory    likewise; shared memory is read at the wait for that
//   by an mbarrier      when nothing but the copy can wake a thread
//   (Mbarrier.cpp)
//
// and at the end of its thread where nobody waits, which is reported of a copy
// that has yet to read shared memory. Its accesses count twice for the order of
// accesses: when it is issued, since it may read and write from then on, and
// when it lands. Without the check, copies land at once.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

using namespace lowlp::cpu;

constexpr int64_t bytesPerBulkUnit = 16;

static char *addressOf(const Access &access) {
  return static_cast<char *>(const_cast<void *>(access.base)) +
         access.byteOffset;
}

/// Reports an access to bytes that something in flight still needs, or brings.
/// Returns false then.
bool Block::isFree(const LowlpThread &thread, const Access &access,
                   const Place &place, const char *site) {
  if (access.isWrite() && !held.isEmpty())
    if (const HeldTiles::Holder *holder =
            held.find(addressOf(access), access.bytes)) {
      setError(
          thread, site,
          memory.describe(place, access) +
              " changes bytes that a product still reads, begun by thread " +
              toString(threads[size_t(holder->thread)].position) + " at " +
              holder->site);
      return false;
    }
  Obstacle obstacle =
      pending.find(addressOf(access), access.bytes, access.isWrite());
  if (!obstacle.copy && !obstacle.isMbarrier)
    return true;
  if (obstacle.isMbarrier)
    setError(thread, site,
             memory.describe(place, access) +
                 " touches an mbarrier, which only its own operations may");
  else
    setError(thread, site,
             memory.describe(place, access) +
                 (obstacle.isWritten
                      ? " touches bytes of an asynchronous copy that was not "
                        "waited for, issued by thread "
                      : " changes bytes that an asynchronous copy still reads, "
                        "issued by thread ") +
                 toString(threads[size_t(obstacle.copy->thread)].position) +
                 " at " + obstacle.copy->site);
  return false;
}

void Block::copyAsync(LowlpThread &thread, const Access &source,
                      const Access &destination, const char *site) {
  ++counters.loads;
  ++counters.stores;
  counters.bytesLoaded += uint64_t(source.bytes);
  counters.bytesStored += uint64_t(destination.bytes);
  PendingCopy copy = {thread.index, site,    source,
                      destination,  nullptr, nullptr};
  if (config.checks) {
    copy.sourcePlace = &checkAccess(thread, source, site, /*usesValue=*/true);
    copy.destinationPlace = &checkAccess(thread, destination, site, false);
  }
  if (landsLate())
    thread.copies.add(pending.add(copy));
  else
    copy.moveBytes();
}

/// Carries out a copy that `thread` has waited for. Returns false on an error.
bool Block::landCopy(const LowlpThread &thread, PendingCopies::Number number) {
  PendingCopy copy = pending.get(number);
  pending.remove(number);
  copy.moveBytes();
  return remember(thread, copy.source, *copy.sourcePlace, copy.site,
                  /*usesValue=*/true) &&
         remember(thread, copy.destination, *copy.destinationPlace, copy.site,
                  /*usesValue=*/false);
}

bool Block::landCopies(LowlpThread &thread, int64_t numInFlight) {
  PendingCopies::Number number;
  while (thread.copies.take(uint64_t(numInFlight), number))
    if (!landCopy(thread, number))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

/// What is common to all bulk copies: checks the bytes on both sides and, where
/// copies land late, notes the copy down. Returns whether it does.
bool Block::issueBulkCopy(LowlpThread &thread, PendingCopy copy,
                          PendingCopies::Number &number) {
  counters.bytesLoaded += uint64_t(copy.source.bytes);
  counters.bytesStored += uint64_t(copy.destination.bytes);
  for (Access *access : {&copy.source, &copy.destination}) {
    if (!config.checks || access->bytes == 0)
      continue;
    const Place *place = memory.find(*access, copy.site);
    if (!place) {
      setError(thread, copy.site, memory.explain(*access));
      abandon();
    }
    (access == &copy.source ? copy.sourcePlace : copy.destinationPlace) = place;
    if (somethingPends())
      checkFree(thread, *access, *place, copy.site);
    if (!rememberAsync(thread, *access, *place, copy.site, Agent::BulkCopy))
      abandon();
    if (traffic)
      traffic->add(copy.site, thread.index, thread.laneBit(),
                   memory.isShared(*place), place->offsetOf(*access),
                   access->bytes);
  }
  if (!landsLate()) {
    copy.moveBytes();
    return false;
  }
  number = pending.add(copy);
  return true;
}

void Block::copyBulk(LowlpThread &thread, const PendingCopy &copy,
                     Mbarrier &barrier) {
  const char *site = copy.site;
  if (order && !barrier.isFenced) {
    setError(thread, site,
             "missing fence: no simt.fence_mbarrier_init lies between the "
             "initialisation of " +
                 barrier.describe() + " and this bulk copy");
    abandon();
  }
  PendingCopies::Number number = 0;
  if (issueBulkCopy(thread, copy, number)) {
    barrier.copies.push_back(number);
    return;
  }
  barrier.missingBytes -= copy.destination.bytes;
  if (!completePhase(thread, barrier, site))
    abandon();
}

void Block::landBulkCopy(Mbarrier &barrier, PendingCopies::Number number) {
  PendingCopy copy = pending.get(number);
  pending.remove(number);
  copy.moveBytes();
  const LowlpThread &thread = threads[size_t(copy.thread)];
  PastAccess access = {order->getTime(),
                       order->componentOf(barrier.number),
                       {uint16_t(copy.thread), siteNumbers(copy.site)},
                       PlainWrite,
                       Agent::BulkCopy};
  history.replace(copy.destinationPlace->offsetOf(copy.destination),
                  copy.destination.bytes, access);
  barrier.missingBytes -= copy.destination.bytes;
  completePhase(thread, barrier, copy.site);
}

void Block::copyBulkToGlobal(LowlpThread &thread, const PendingCopy &copy) {
  trackOrder();
  PendingCopies::Number number = 0;
  if (issueBulkCopy(thread, copy, number))
    thread.bulkCopies.add(number);
}

/// Reads the source of a bulk copy that `thread` has waited for.
bool Block::readBulkSource(const LowlpThread &thread,
                           PendingCopies::Number number) {
  const PendingCopy &copy = pending.get(number);
  if (copy.isRead)
    return true;
  copy.moveBytes();
  pending.setRead(number);
  return rememberAsync(thread, copy.source, *copy.sourcePlace, copy.site,
                       Agent::BulkCopy);
}

bool Block::landBulkCopies(LowlpThread &thread, int64_t numInFlight,
                           bool onlyRead) {
  if (onlyRead) {
    bool ok = true;
    thread.bulkCopies.forEachDue(uint64_t(numInFlight),
                                 [&](PendingCopies::Number number) {
                                   ok = ok && readBulkSource(thread, number);
                                 });
    return ok;
  }
  PendingCopies::Number number;
  while (thread.bulkCopies.take(uint64_t(numInFlight), number)) {
    if (!readBulkSource(thread, number))
      return false;
    PendingCopy copy = pending.get(number);
    pending.remove(number);
    if (!rememberAsync(thread, copy.destination, *copy.destinationPlace,
                       copy.site, Agent::BulkCopy))
      return false;
  }
  return true;
}

void Block::finishCopies(LowlpThread &thread) {
  thread.copies.commit();
  thread.bulkCopies.commit();
  if (!landCopies(thread, 0))
    return;
  // What they write may arrive later, but the shared memory that they read is
  // the block's only until its end.
  thread.bulkCopies.forEachDue(0, [&](PendingCopies::Number number) {
    const PendingCopy &copy = pending.get(number);
    if (!copy.isRead && !failed)
      setError(thread, copy.site,
               "the thread ended before this copy was waited for, and may not "
               "have read shared memory by then");
  });
  if (!failed)
    landBulkCopies(thread, 0, /*onlyRead=*/false);
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

void lowlpCpuCopyAsync(LowlpThread *thread, const void *source,
                       int64_t sourceOffset, void *destination,
                       int64_t destinationOffset, int64_t bytes,
                       const char *site) {
  thread->block->copyAsync(
      *thread, {source, sourceOffset, bytes, bytes, PlainRead},
      {destination, destinationOffset, bytes, bytes, PlainWrite}, site);
}

void lowlpCpuCopyAsyncCommit(LowlpThread *thread) { thread->copies.commit(); }

void lowlpCpuCopyAsyncWait(LowlpThread *thread, int64_t numInFlight) {
  if (!thread->block->landCopies(*thread, numInFlight))
    thread->block->abandon();
}

void lowlpCpuCopyBulk(LowlpThread *thread, const void *source,
                      int64_t sourceOffset, void *destination,
                      int64_t destinationOffset, void *barrier,
                      int64_t barrierOffset, int64_t bytes, const char *site) {
  Block &block = *thread->block;
  block.checkBulkBytes(*thread, bytes, site);
  Mbarrier &counting =
      block.findMbarrier(*thread, barrier, barrierOffset, site);
  ++block.counters.loads;
  ++block.counters.stores;
  block.copyBulk(
      *thread,
      {thread->index,
       site,
       {source, sourceOffset, bytes, bytesPerBulkUnit, PlainRead},
       {destination, destinationOffset, bytes, bytesPerBulkUnit, PlainWrite},
       nullptr,
       nullptr},
      counting);
}

void lowlpCpuCopyBulkToGlobal(LowlpThread *thread, const void *source,
                              int64_t sourceOffset, void *destination,
                              int64_t destinationOffset, int64_t bytes,
                              const char *site) {
  Block &block = *thread->block;
  block.checkBulkBytes(*thread, bytes, site);
  ++block.counters.loads;
  ++block.counters.stores;
  block.copyBulkToGlobal(
      *thread,
      {thread->index,
       site,
       {source, sourceOffset, bytes, bytesPerBulkUnit, PlainRead},
       {destination, destinationOffset, bytes, bytesPerBulkUnit, PlainWrite},
       nullptr,
       nullptr});
}

void lowlpCpuCopyBulkCommit(LowlpThread *thread) {
  thread->bulkCopies.commit();
}

void lowlpCpuCopyBulkWait(LowlpThread *thread, int64_t numInFlight,
                          int32_t onlyRead) {
  if (!thread->block->landBulkCopies(*thread, numInFlight, onlyRead))
    thread->block->abandon();
}

void Block::checkBulkBytes(const LowlpThread &thread, int64_t bytes,
                           const char *site) {
  if (bytes > 0 && bytes % bytesPerBulkUnit == 0)
    return;
  setError(thread, site,
           "a bulk copy moves a multiple of 16 bytes, not " +
               std::to_string(bytes));
  abandon();
}
