//===- Races.cpp - Reports of races and uninitialised reads ---------------===//

#include "Block.h"

#include <algorithm>

using namespace lowlp::cpu;

static const char *describeKind(AccessKind kind) {
  return kind == PlainRead    ? "the read"
         : kind == PlainWrite ? "the write"
                              : "the atomic";
}

/// Reports that `access`, put in words, has no order with another one.
void Block::setRaceError(const LowlpThread &thread, const char *site,
                         const std::string &access, const Finding &finding) {
  const bool inBlock = finding.otherBlock == number;
  std::string text =
      "race: " + access + " and " + describeKind(finding.otherKind) + " by ";
  if (!inBlock)
    text += "block " +
            toString(delinearize(finding.otherBlock - 1, config.grid)) + ", ";
  text += "thread " +
          toString(delinearize(finding.other.thread, config.block)) + " at " +
          launch.sites.getSite(finding.other.site);
  text += inBlock ? " have no barrier between them"
                  : " have no order, as blocks run in any";
  if (!inBlock && knowsOf(finding.otherBlock))
    text += " (a semaphore orders what a block did before the barrier in front "
            "of the release, and what another does after the barrier after "
            "the acquire)";
  setError(thread, site, text);
}

static std::string describeAgent(Agent agent) {
  return agent == Agent::BulkCopy ? "a bulk copy" : "a product";
}

/// Reports that `access`, by `agent`, collides with one that the history keeps.
void Block::setCollisionError(const LowlpThread &thread, const char *site,
                              const std::string &access, Agent agent,
                              const Collision &collision) {
  const PastAccess &other = collision.other;
  std::string by =
      describeKind(other.kind) +
      (other.isAsync() ? " of " + describeAgent(other.agent) : "") +
      " by thread " + toString(delinearize(other.actor.thread, config.block)) +
      " at " + launch.sites.getSite(other.actor.site);
  if (collision.kind == Collision::MissingFence)
    setError(thread, site,
             "missing fence: " + access + " by " + describeAgent(agent) +
                 " and " + by + " have no fence_async between them");
  else
    setError(thread, site,
             "race: " + access + " and " + by +
                 " have no barrier between them, nor does an mbarrier order "
                 "them");
}

/// Compares an access of shared memory with the history. All but what a bulk
/// copy is going to write is added to it.
bool Block::compareWithHistory(const LowlpThread &thread, const Access &access,
                               const Place &place, const char *site,
                               Agent agent) {
  PastAccess past = {order->getTime(),
                     uint16_t(thread.index),
                     {uint16_t(thread.index), siteNumbers(site)},
                     access.kind,
                     agent};
  int64_t offset = place.offsetOf(access);
  Collision collision =
      past.isAsync() && access.isWrite()
          ? history.compare(offset, access.bytes, past, *order)
          : history.visit(offset, access.bytes, past, *order);
  if (collision.kind == Collision::Nothing)
    return true;
  setCollisionError(thread, site, memory.describe(place, access), agent,
                    collision);
  return false;
}

/// Whether a thread has acquired anything that `block` had released.
bool Block::knowsOf(uint32_t block) const {
  return known.knowsOf(block) ||
         std::any_of(threads.begin(), threads.end(),
                     [&](const LowlpThread &thread) {
                       return thread.acquired.knowsOf(block);
                     });
}

bool Block::remember(const LowlpThread &thread, const Access &access,
                     const Place &place, const char *site, bool usesValue) {
  if (!place.shadow)
    return true;
  if (unwritten)
    return !isWriterAwaited(thread, access, place, site);
  if (order && memory.isShared(place) &&
      !compareWithHistory(thread, access, place, site, Agent::Thread))
    return false;
  return visitShadow(thread, access, place, site, usesValue,
                     /*waitsForWriter=*/memory.isShared(place));
}

/// `remember` for what a bulk copy or a product reads or writes.
bool Block::rememberAsync(const LowlpThread &thread, const Access &access,
                          const Place &place, const char *site, Agent agent) {
  if (!place.shadow)
    return true;
  if (unwritten)
    return !isWriterAwaited(thread, access, place, site);
  if (order && memory.isShared(place) &&
      !compareWithHistory(thread, access, place, site, agent))
    return false;
  return visitShadow(thread, access, place, site, !access.isWrite(),
                     /*waitsForWriter=*/false);
}

bool Block::visitShadow(const LowlpThread &thread, const Access &access,
                        const Place &place, const char *site, bool usesValue,
                        bool waitsForWriter) {
  int64_t offset = place.offsetOf(access);
  Visit visit = {{uint16_t(thread.index), siteNumbers(site)},
                 number,
                 epoch,
                 time,
                 epochTime,
                 access.kind,
                 usesValue,
                 &known,
                 &thread.acquired,
                 /*isCompared=*/order && memory.isShared(place),
                 order.get()};
  Finding finding =
      place.shadow->visit(place.shadowOffset + offset, access.bytes, visit);
  if (finding.kind == Finding::Nothing)
    return true;
  // Of a wide access the report names the first byte that is concerned; of a
  // granule that begins before the access, the access.
  std::string text = memory.describe(place, access);
  int64_t first = std::max(offset, finding.byteOffset - place.shadowOffset);
  if (first != offset)
    text += ", from byte offset " + std::to_string(first) + " on,";
  switch (finding.kind) {
  case Finding::Race:
    setRaceError(thread, site, text, finding);
    break;
  case Finding::Uninitialised:
    text =
        "uninitialised read: " + text + " uses bytes that nothing has written";
    if (waitsForWriter)
      waitForWriter(thread, site, text, first, offset + access.bytes);
    else
      setError(thread, site, text);
    break;
  default:
    setError(thread, site, "launch: no memory to check " + text);
  }
  return false;
}
