//===- Shadow.cpp - Finding races and uninitialised reads -----------------===//

#include "Shadow.h"

#include "ThreadOrder.h"

#include <algorithm>
#include <cstdlib>

#include <sched.h>

using namespace lowlp::cpu;

/// Holds a page for one host thread. Pages are held for a few cells at a time.
class Shadow::Lock {
public:
  Lock(Page &page, bool isNeeded)
      : isLocked(isNeeded ? &page.isLocked : nullptr) {
    for (int tries = 1;
         isLocked && isLocked->exchange(1, std::memory_order_acquire); ++tries)
      if (tries % 64 == 0)
        sched_yield();
  }
  ~Lock() {
    if (isLocked)
      isLocked->store(0, std::memory_order_release);
  }

private:
  std::atomic<uint8_t> *isLocked;
};

// Zero pages of the system stand for what is never touched, so the shadow of a
// large range costs little.
Shadow::Shadow(int64_t bytes, const Options &options)
    : options(options), numPages(bytes / bytesPerPage + 1),
      pages(static_cast<Page *>(std::calloc(size_t(numPages), sizeof(Page)))) {}

Shadow::~Shadow() {
  for (int64_t i = 0; pages && i < numPages; ++i)
    freeCells(pages[i]);
  std::free(pages);
}

void Shadow::freeCells(Page &page) {
  auto numCells = size_t(bytesPerPage >> page.granuleShift);
  for (size_t i = 0; page.cells && i < numCells; ++i)
    std::free(page.cells[i].others);
  std::free(page.cells);
}

/// Makes the cells of the page so fine that none holds bytes within the access
/// and bytes outside of it. Returns false if there is no memory.
bool Shadow::refine(Page &page, int64_t byteOffset, int64_t bytes) {
  int shift =
      std::min(maxGranuleShift, __builtin_ctzll(uint64_t(byteOffset | bytes)));
  if (page.cells && shift >= page.granuleShift)
    return true;
  auto numCells = size_t(bytesPerPage >> shift);
  auto *cells = static_cast<Cell *>(std::calloc(numCells, sizeof(Cell)));
  if (!cells)
    return false;
  if (page.cells)
    for (size_t i = 0; i < numCells; ++i) {
      cells[i] = page.cells[i >> (page.granuleShift - shift)];
      if (const Others *others = cells[i].others) {
        cells[i].others = static_cast<Others *>(std::malloc(sizeof(Others)));
        if (cells[i].others)
          *cells[i].others = *others;
      }
    }
  freeCells(page);
  page.cells = cells;
  page.granuleShift = uint8_t(shift);
  return true;
}

Finding Shadow::visit(int64_t byteOffset, int64_t bytes, const Visit &visit) {
  Finding finding;
  while (bytes > 0 && finding.kind == Finding::Nothing) {
    int64_t inPage = byteOffset % bytesPerPage;
    int64_t count = std::min(bytes, bytesPerPage - inPage);
    finding = visitPage(pages[byteOffset / bytesPerPage], inPage, count, visit);
    finding.byteOffset += byteOffset - inPage;
    byteOffset += count;
    bytes -= count;
  }
  return finding;
}

Finding Shadow::visitPage(Page &page, int64_t byteOffset, int64_t bytes,
                          const Visit &visit) {
  Lock lock(page, !options.isOwnedByBlock);
  Finding finding;
  if (!refine(page, byteOffset, bytes)) {
    finding.kind = Finding::NoMemory;
    return finding;
  }
  int64_t last = (byteOffset + bytes - 1) >> page.granuleShift;
  for (int64_t i = byteOffset >> page.granuleShift; i <= last; ++i) {
    finding.kind = visitCell(page.cells[i], visit, finding);
    if (finding.kind == Finding::Nothing)
      continue;
    finding.byteOffset = i << page.granuleShift;
    break;
  }
  return finding;
}

/// Fills in the partner of a race, not the place.
Finding::Kind Shadow::visitCell(Cell &cell, const Visit &visit,
                                Finding &finding) {
  if (options.isOwnedByBlock && cell.block != visit.block) {
    cell = Cell();
    cell.block = visit.block;
  }
  if (options.findsRaces && !visit.isCompared) {
    if (!cell.block) {
      cell.block = visit.block;
      cell.epoch = visit.epoch;
    }
    if (cell.block != visit.block || cell.others
            ? comesFromOtherBlock(cell, visit, finding)
            : comesFromOtherThread(cell, visit, finding))
      return Finding::Race;
    if (cell.block == visit.block)
      setTimes(cell, visit);
  }
  if (options.findsUninitialised && visit.usesValue && !cell.isWritten &&
      !options.isInitialised)
    return Finding::Uninitialised;
  cell.isWritten |= visit.kind != PlainRead;
  return Finding::Nothing;
}

Actor &Shadow::actorOf(Cell &cell, AccessKind kind) {
  return kind == PlainRead    ? cell.reader
         : kind == PlainWrite ? cell.writer
                              : cell.updater;
}

uint32_t &Shadow::timeOf(Cell &cell, AccessKind kind) {
  return kind == PlainRead    ? cell.times.reader
         : kind == PlainWrite ? cell.times.writer
                              : cell.times.updater;
}

/// Whether an access by another block races with what `cell.block` did.
bool Shadow::racesWithFirstBlock(Cell &cell, const Visit &visit,
                                 Finding &finding) {
  auto isBehind = [&](const Actor &actor, uint32_t time) {
    finding.other = actor;
    return visit.isBehind(cell.block, time, actor.thread);
  };
  const uint8_t conflicts = conflictsOf(visit.kind);
  finding.otherBlock = cell.block;
  // A write explains a race best.
  for (AccessKind kind : {PlainWrite, AtomicUpdate, PlainRead}) {
    if (!(cell.kinds & conflicts & kind))
      continue;
    finding.otherKind = kind;
    if (!isBehind(actorOf(cell, kind), timeOf(cell, kind)) ||
        (cell.secondKind == kind && !isBehind(cell.second, cell.times.second)))
      return true;
  }
  return false;
}

/// Whether an access races with what blocks did that came after the first. The
/// visitor's own block may be among them.
bool Shadow::racesWithOthers(const Others &others, const Visit &visit,
                             Finding &finding) {
  const uint8_t conflicts = conflictsOf(visit.kind);
  for (unsigned i = 0; i < others.numEntries; ++i) {
    const Others::Entry &entry = others.entries[i];
    if (!(entry.kind & conflicts))
      continue;
    bool isOrdered =
        entry.block == visit.block
            ? entry.actor.thread == visit.actor.thread ||
                  entry.time < visit.epochTime ||
                  mayBeOrdered(visit, entry.actor)
            : visit.isBehind(entry.block, entry.time, entry.actor.thread);
    if (isOrdered)
      continue;
    finding.otherKind = entry.kind;
    finding.otherBlock = entry.block;
    finding.other = entry.actor;
    return true;
  }
  return false;
}

/// Remembers an access, in place of an earlier one that it speaks for.
void Shadow::addToOthers(Others &others, const Visit &visit) {
  unsigned place = others.numEntries;
  for (unsigned i = 0; i < others.numEntries; ++i) {
    const Others::Entry &entry = others.entries[i];
    if (entry.block != visit.block || entry.kind != visit.kind)
      continue;
    if (entry.actor.thread == visit.actor.thread ||
        entry.time < visit.epochTime) {
      place = i;
      break;
    }
  }
  if (place == Others::maxEntries)
    place = visit.block % Others::maxEntries;
  else if (place == others.numEntries)
    ++others.numEntries;
  others.entries[place] = {visit.block, visit.time, visit.actor, visit.kind};
}

/// Adds an access to bytes that a second block has come to, now or before.
/// Returns whether it races.
bool Shadow::comesFromOtherBlock(Cell &cell, const Visit &visit,
                                 Finding &finding) {
  const bool isFirst = cell.block == visit.block;
  if (!isFirst && racesWithFirstBlock(cell, visit, finding))
    return true;
  if (cell.others && racesWithOthers(*cell.others, visit, finding))
    return true;
  if (visit.kind == PlainWrite) {
    // All before it is ordered, so what races with that races with this too.
    std::free(cell.others);
    cell.others = nullptr;
    if (!isFirst) {
      const bool isWritten = cell.isWritten;
      cell = Cell();
      cell.isWritten = isWritten;
      cell.block = visit.block;
      cell.epoch = visit.epoch;
    }
  }
  if (cell.block == visit.block)
    return comesFromOtherThread(cell, visit, finding);
  if (!cell.others)
    cell.others = static_cast<Others *>(std::calloc(1, sizeof(Others)));
  if (cell.others)
    addToOthers(*cell.others, visit);
  return false;
}

/// Whether mbarriers may order the visitor after another thread of the block.
bool Shadow::mayBeOrdered(const Visit &visit, const Actor &other) {
  return visit.order &&
         visit.order->mayHaveSeen(visit.actor.thread, other.thread);
}

/// Dates an access by the block of the cell that has just been added.
void Shadow::setTimes(Cell &cell, const Visit &visit) {
  if (actorOf(cell, visit.kind).thread == visit.actor.thread)
    timeOf(cell, visit.kind) = visit.time;
  else if (cell.secondKind == visit.kind &&
           cell.second.thread == visit.actor.thread)
    cell.times.second = visit.time;
}

/// Adds an access to bytes that only the visitor's block has come to. Returns
/// whether it races.
bool Shadow::comesFromOtherThread(Cell &cell, const Visit &visit,
                                  Finding &finding) {
  if (cell.epoch != visit.epoch) {
    cell.epoch = visit.epoch;
    cell.current = cell.secondKind = 0;
  }
  const uint8_t conflicts = conflictsOf(visit.kind);
  finding.otherBlock = visit.block;
  for (AccessKind kind : {PlainWrite, AtomicUpdate, PlainRead}) {
    if (!(cell.current & conflicts & kind))
      continue;
    finding.otherKind = kind;
    finding.other = actorOf(cell, kind);
    if (finding.other.thread != visit.actor.thread &&
        !mayBeOrdered(visit, finding.other))
      return true;
    // The first thread of its kind is the visitor; a second one is not.
    finding.other = cell.second;
    if (cell.secondKind == kind && finding.other.thread != visit.actor.thread &&
        !mayBeOrdered(visit, finding.other))
      return true;
  }
  Actor &first = actorOf(cell, visit.kind);
  if (!(cell.current & visit.kind)) {
    first = visit.actor;
  } else if (first.thread != visit.actor.thread) {
    cell.second = visit.actor;
    cell.secondKind = visit.kind;
  }
  cell.kinds |= visit.kind;
  cell.current |= visit.kind;
  return false;
}
