//===- AccessHistory.cpp - Accesses that nothing orders yet ---------------===//

#include "AccessHistory.h"

#include <algorithm>

using namespace lowlp::cpu;

void AccessHistory::reset(int64_t sharedBytes) {
  pages.assign(size_t(sharedBytes / bytesPerPage + 1), Page());
}

void AccessHistory::refine(Page &page, int64_t byteOffset, int64_t bytes) {
  int shift =
      std::min(maxGranuleShift, __builtin_ctzll(uint64_t(byteOffset | bytes)));
  if (!page.cells.empty() && shift >= page.granuleShift)
    return;
  std::vector<Cell> cells(size_t(bytesPerPage >> shift));
  if (!page.cells.empty())
    for (size_t i = 0; i < cells.size(); ++i)
      cells[i] = page.cells[i >> (page.granuleShift - shift)];
  page.cells = std::move(cells);
  page.granuleShift = shift;
}

template <typename VisitCell>
void AccessHistory::forEachCell(int64_t byteOffset, int64_t bytes,
                                VisitCell visitCell) {
  while (bytes > 0) {
    Page &page = pages[size_t(byteOffset / bytesPerPage)];
    int64_t inPage = byteOffset % bytesPerPage;
    int64_t count = std::min(bytes, bytesPerPage - inPage);
    refine(page, inPage, count);
    int64_t last = (inPage + count - 1) >> page.granuleShift;
    for (int64_t i = inPage >> page.granuleShift; i <= last; ++i)
      if (!visitCell(page.cells[size_t(i)]))
        return;
    byteOffset += count;
    bytes -= count;
  }
}

Collision AccessHistory::collide(const Cell &cell, const PastAccess &access,
                                 const ThreadOrder &order) {
  for (const PastAccess &other : cell) {
    if (!(conflictsOf(access.kind) & other.kind))
      continue;
    int32_t thread = access.actor.thread;
    if (!order.hasSeen(thread, other.component, other.time))
      return {Collision::Race, other};
    // A read is complete when its thread goes on: what is written after it
    // cannot reach it.
    if (access.isAsync() && !other.isAsync() &&
        other.kind != AccessKind::PlainRead &&
        !order.isFenced(thread, other.component, other.time))
      return {Collision::MissingFence, other};
  }
  return {};
}

Collision AccessHistory::compare(int64_t byteOffset, int64_t bytes,
                                 const PastAccess &access,
                                 const ThreadOrder &order) {
  Collision collision;
  forEachCell(byteOffset, bytes, [&](const Cell &cell) {
    collision = collide(cell, access, order);
    return collision.kind == Collision::Nothing;
  });
  return collision;
}

Collision AccessHistory::visit(int64_t byteOffset, int64_t bytes,
                               const PastAccess &access,
                               const ThreadOrder &order) {
  Collision collision;
  forEachCell(byteOffset, bytes, [&](Cell &cell) {
    collision = collide(cell, access, order);
    if (collision.kind != Collision::Nothing)
      return false;
    auto isCovered = [&](const PastAccess &other) {
      bool sameKind =
          other.kind == access.kind && other.isAsync() == access.isAsync();
      return (sameKind || access.kind == PlainWrite) &&
             order.hasSeen(access.actor.thread, other.component, other.time);
    };
    cell.erase(std::remove_if(cell.begin(), cell.end(), isCovered), cell.end());
    cell.push_back(access);
    return true;
  });
  return collision;
}

void AccessHistory::replace(int64_t byteOffset, int64_t bytes,
                            const PastAccess &access) {
  forEachCell(byteOffset, bytes, [&](Cell &cell) {
    cell.assign(1, access);
    return true;
  });
}
