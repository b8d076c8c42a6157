//===- UnwrittenReads.cpp - Reads that come before the write --------------===//
//
// A read of shared memory that nothing has written is wrong by itself, but the
// usual reason is that another thread writes there later, and a barrier is
// missing. Which it is shows when the other threads run on: the reader stays
// where it is, so that the block passes no barrier, and whatever they write
// they might have written before the read as well. What else they do wrong
// meanwhile is not looked at. When none of them can go on, or they have done
// too much to be waited for (one may poll a word that only the reader sets),
// the read is reported without a writer.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

using namespace lowlp::cpu;

// Far more than the threads of a block do between two barriers, and less than
// a second.
constexpr int64_t patienceAccesses = 1000 * 1000;

/// Begins the search for who writes the bytes that `reader` has read. The
/// reader's fiber, or that which reads for it, is to be abandoned.
void Block::waitForWriter(const LowlpThread &reader, const char *site,
                          const std::string &text, int64_t begin, int64_t end) {
  unwritten = {&reader, site, text, begin, end, patienceAccesses};
}

/// Whether the search is over, with an error, because of this access.
bool Block::isWriterAwaited(const LowlpThread &thread, const Access &access,
                            const Place &place, const char *site) {
  if (--unwritten->patience < 0) {
    giveUpOnWriter();
    return true;
  }
  int64_t begin = place.offsetOf(access);
  if (!access.isWrite() || &thread == unwritten->reader ||
      !memory.isShared(place) || begin >= unwritten->end ||
      begin + access.bytes <= unwritten->begin)
    return false;
  unwritten->text += std::string(" yet; missing barrier") +
                     (order ? " or wait" : "") + ": thread " +
                     toString(thread.position) + " at " + site +
                     " writes them without " +
                     (order ? "either" : "a barrier") + " between the two";
  giveUpOnWriter();
  return true;
}

/// Reports the read with what is known of it.
void Block::giveUpOnWriter() {
  UnwrittenRead read = std::move(*unwritten);
  unwritten.reset();
  setError(*read.reader, read.site, read.text);
}
