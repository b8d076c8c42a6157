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
            "of the release, and what another does behind the barrier after "
            "the acquire)";
  setError(thread, site, text);
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
  int64_t offset = place.offsetOf(access);
  Visit visit = {{uint16_t(thread.index), siteNumbers(site)},
                 number,
                 epoch,
                 time,
                 epochTime,
                 access.kind,
                 usesValue,
                 &known,
                 &thread.acquired};
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
    setError(thread, site,
             "uninitialised read: " + text +
                 " uses bytes that nothing has written");
    break;
  default:
    setError(thread, site, "launch: no memory to check " + text);
  }
  return false;
}
