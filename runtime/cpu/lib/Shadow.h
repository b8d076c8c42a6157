//===- Shadow.h - Who touched which byte, and in what order -----*- C++ -*-===//
//
// Next to a range of memory lies a shadow: for every few bytes a cell that
// remembers who read, wrote and atomically changed them. An access is compared
// with the cell, and two accesses race if one of them is a plain write or only
// one of them is atomic, they come from different threads, and nothing orders
// them. What orders accesses is
//
//   within a block: a barrier of the block, which begins a new epoch, and
//   mbarriers (ThreadOrder.h): two threads of which one may have seen what the
//   other did are taken to be ordered;
//   between blocks: a release and the acquire that reads it (Knowledge.h).
//
// Collectives of a warp (mma, shfl) order no memory in the PTX ISA, section
// "Memory Consistency Model", and an atomic without semantics of its own is
// relaxed; neither orders anything here. Writing the value that is there
// already is a write.
//
// A cell keeps two threads at most, and that is enough to find a race in every
// run that has one, whatever order the seed chose: as long as there was none,
// bytes belong to one thread of the epoch, or all their accesses are reads, or
// all are atomic. In the last two cases any other access races with at least
// one of two different threads. Across blocks the same holds of blocks that
// nothing orders. Where semaphores order some of many blocks that touched the
// same bytes, a cell keeps those it has room for (`Others`); a race with one of
// the rest shows only in runs in which that one is kept.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_SHADOW_H
#define LOWLP_CPU_LIB_SHADOW_H

#include "Knowledge.h"

#include <atomic>
#include <cstdint>

namespace lowlp {
namespace cpu {

/// Ways to touch memory, as bits.
enum AccessKind : uint8_t { PlainRead = 1, PlainWrite = 2, AtomicUpdate = 4 };

/// The kinds that an access of `kind` must be ordered with.
inline uint8_t conflictsOf(AccessKind kind) {
  switch (kind) {
  case PlainRead:
    return PlainWrite | AtomicUpdate;
  case AtomicUpdate:
    return PlainRead | PlainWrite;
  case PlainWrite:
    break;
  }
  return PlainRead | PlainWrite | AtomicUpdate;
}

class ThreadOrder;

/// A thread of a block, and the op it is at (see `SiteTable`).
struct Actor {
  uint16_t thread;
  uint16_t site;
};

/// An access on its way to the shadow.
struct Visit {
  Actor actor;
  uint32_t block;     ///< never 0
  uint32_t epoch;     ///< how many barriers the block has passed
  uint32_t time;      ///< how many barriers and releases
  uint32_t epochTime; ///< `time` at the last barrier
  AccessKind kind;
  bool usesValue;            ///< what was there before comes to matter
  const Knowledge *ofBlock;  ///< what the block knows of others, and
  const Knowledge *ofThread; ///< the thread beyond that
  /// Races within the block are looked for elsewhere (AccessHistory.h).
  bool isCompared = false;
  /// What mbarriers may order within the block; null: nothing.
  const ThreadOrder *order = nullptr;

  /// Whether an access by another block comes before this one.
  bool isBehind(uint32_t otherBlock, uint32_t otherTime,
                uint16_t thread) const {
    return ofBlock->covers(otherBlock, otherTime, thread) ||
           ofThread->covers(otherBlock, otherTime, thread);
  }
};

/// What is wrong with an access, and with whom it collides.
struct Finding {
  enum Kind : uint8_t { Nothing, Race, Uninitialised, NoMemory };
  Kind kind = Nothing;
  int64_t byteOffset = 0; ///< of the first byte concerned
  // Of a race:
  AccessKind otherKind = PlainRead;
  uint32_t otherBlock = 0;
  Actor other = {0, 0};
};

/// The shadow of one range of memory.
class Shadow {
public:
  struct Options {
    bool findsRaces;
    bool findsUninitialised;
    bool isInitialised;  ///< the range holds values from the beginning
    bool isOwnedByBlock; ///< shared memory: each block begins anew, and no two
                         ///< host threads come here at once
  };

  /// Ensures: `isValid` tells whether there was memory for it.
  Shadow(int64_t bytes, const Options &options);
  ~Shadow();
  Shadow(const Shadow &) = delete;
  Shadow &operator=(const Shadow &) = delete;
  bool isValid() const { return pages != nullptr; }

  /// Remembers the access and returns the first thing wrong with it. Requires:
  /// the bytes lie in the range.
  Finding visit(int64_t byteOffset, int64_t bytes, const Visit &visit);

private:
  /// When the threads of a cell did what they did, in their block's time.
  struct Times {
    uint32_t reader, writer, updater, second;
  };

  /// What blocks did with bytes that another block had come to first, since the
  /// last write, with which all before it was ordered.
  struct Others {
    struct Entry {
      uint32_t block;
      uint32_t time;
      Actor actor;
      AccessKind kind;
    };
    static constexpr unsigned maxEntries = 8;
    unsigned numEntries;
    Entry entries[maxEntries];
  };

  /// The history of a granule. All but `others` and `isWritten` speaks of
  /// `block`.
  struct Cell {
    uint32_t block;     ///< the first that came; 0: nobody
    uint32_t epoch;     ///< of the latest access by `block`
    uint8_t kinds;      ///< of all accesses by `block`
    uint8_t current;    ///< of those in `epoch`
    uint8_t secondKind; ///< what `second` did in `epoch`; 0: nothing
    bool isWritten;
    Actor reader, writer, updater; ///< valid where `kinds` has their bit
    Actor second;                  ///< of another thread in `epoch`
    Times times;
    Others *others; ///< null: no other block came; owned
  };

  /// Cells appear with the first access to their page and are as fine as the
  /// accesses to the page need: 1 to 16 bytes each. Whatever is in an unused
  /// page or cell is zero.
  struct Page {
    Cell *cells;
    std::atomic<uint8_t> isLocked;
    uint8_t granuleShift;
  };
  class Lock;

  static constexpr int64_t bytesPerPage = 1024;
  static constexpr int maxGranuleShift = 4;

  static void freeCells(Page &page);
  static bool refine(Page &page, int64_t byteOffset, int64_t bytes);
  Finding visitPage(Page &page, int64_t byteOffset, int64_t bytes,
                    const Visit &visit);
  Finding::Kind visitCell(Cell &cell, const Visit &visit, Finding &finding);
  static bool comesFromOtherBlock(Cell &cell, const Visit &visit,
                                  Finding &finding);
  static bool racesWithFirstBlock(Cell &cell, const Visit &visit,
                                  Finding &finding);
  static bool racesWithOthers(const Others &others, const Visit &visit,
                              Finding &finding);
  static void addToOthers(Others &others, const Visit &visit);
  static void setTimes(Cell &cell, const Visit &visit);
  static bool comesFromOtherThread(Cell &cell, const Visit &visit,
                                   Finding &finding);
  static bool mayBeOrdered(const Visit &visit, const Actor &other);
  static Actor &actorOf(Cell &cell, AccessKind kind);
  static uint32_t &timeOf(Cell &cell, AccessKind kind);

  const Options options;
  const int64_t numPages;
  Page *pages;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_SHADOW_H
