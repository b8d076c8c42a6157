//===- Matrices.cpp - ldmatrix and stmatrix -------------------------------===//
//
// PTX ISA, "Warp Level Matrix Instructions", ldmatrix and stmatrix with
// .m8n8.b16: word m of lane l holds two of the elements of 16 bits of matrix m,
//
//   plain   row l / 4,           columns 2 (l % 4) and one more
//   .trans  rows 2 (l % 4) and one more,  column l / 4
//
// and lane 8 m + r gives the address of row r.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <cstring>

using namespace lowlp::cpu;

constexpr int rowsPerMatrix = 8;
constexpr int64_t bytesPerRow = 16;
constexpr int64_t bytesPerElement = 2;

void Block::announceRow(LowlpThread &thread, const MatrixOperands &row,
                        int32_t count, bool isStore, const char *site) {
  ++(isStore ? counters.stores : counters.loads);
  (isStore ? counters.bytesStored : counters.bytesLoaded) += bytesPerRow;
  if (!config.checks)
    return;
  Access access = {row.base, row.byteOffset, bytesPerRow, bytesPerRow,
                   isStore ? PlainWrite : PlainRead};
  const Place *place = memory.find(access, site);
  if (!place) {
    setError(thread, site, memory.explain(access));
    abandon();
  }
  if (!memory.isShared(*place)) {
    setError(thread, site,
             "matrices lie in shared memory, but this row in " +
                 memory.nameOf(*place));
    abandon();
  }
  if (somethingPends())
    checkFree(thread, access, *place, site);
  uint32_t lanes = uint32_t((uint64_t(1) << rowsPerMatrix * count) - 1);
  if (traffic)
    traffic->add(site, thread.index, lanes, /*isShared=*/true,
                 place->offsetOf(access), bytesPerRow);
}

/// Adds what one lane reads or writes of a row to the history of its bytes.
bool Block::rememberPart(const LowlpThread &thread, const Access &part) {
  if (!config.checks)
    return true;
  const char *site = thread.arrival.site;
  const Place *place = memory.find(part, site);
  return remember(thread, part, *place, site, part.kind == PlainRead);
}

bool Block::moveMatrices(const LowlpThread &thread) {
  bool isStore = thread.arrival.kind == MeetingKind::StoreMatrix;
  int count = MatrixOperands::countOf(thread.arrival.mode);
  bool transposed = MatrixOperands::isTransposed(thread.arrival.mode);
  for (int lane = 0; lane < lanesPerWarp; ++lane) {
    const LowlpThread &own = neighbour(thread, lane);
    auto *words = static_cast<char *>(own.arrival.matrix.words);
    for (int half = 0; half < 2 * count; ++half) {
      int inPair = 2 * (lane % 4) + half % 2;
      int row = transposed ? inPair : lane / 4;
      int column = transposed ? lane / 4 : inPair;
      const MatrixOperands &address =
          neighbour(thread, rowsPerMatrix * (half / 2) + row).arrival.matrix;
      int64_t offset = address.byteOffset + column * bytesPerElement;
      if (!rememberPart(own,
                        {address.base, offset, bytesPerElement, bytesPerElement,
                         isStore ? PlainWrite : PlainRead}))
        return false;
      char *element =
          const_cast<char *>(static_cast<const char *>(address.base)) + offset;
      char *held = words + half * bytesPerElement;
      std::memcpy(isStore ? element : held, isStore ? held : element,
                  size_t(bytesPerElement));
    }
  }
  return true;
}
