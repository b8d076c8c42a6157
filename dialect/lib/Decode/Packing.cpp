//===- Packing.cpp - Codes of a matrix to packed words and back -----------===//
//
// Units are shared out to threads, some along K at a time. Where the 64 codes
// of a row of a unit are neighbours in the matrix they are read in place, else
// copied together; UnitPlanes.h does the rest, for all lanes of a unit at once.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Decode/Packing.h"
#include "UnitPlanes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

using namespace lowlp;

//===----------------------------------------------------------------------===//
// The shape
//===----------------------------------------------------------------------===//

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t CodeMatrix::padGroup(int64_t groupSize) {
  if (groupSize <= 32)
    return groupSize <= 16 ? 16 : 32;
  return ceilDiv(groupSize, 64) * 64;
}

int64_t CodeMatrix::getNumUnitsN(const Placement &placement) const {
  return ceilDiv(n, placement.getUnitRows());
}

int64_t CodeMatrix::getNumUnitsK() const {
  return ceilDiv(k / groupSize * getPaddedGroup(), Placement::unitK);
}

int64_t CodeMatrix::getNumPackedWords(const Placement &placement) const {
  return getNumUnitsN(placement) * getNumUnitsK() * placement.getNumWords() *
         Placement::lanes;
}

namespace {
/// Codes of a row that are neighbours in the matrix and in the unit.
struct Segment {
  int64_t column;
  int64_t inUnit;
  int64_t length;
};

/// The codes of a row that are in a unit: of at most four groups.
class Segments {
public:
  Segments(const CodeMatrix &matrix, int64_t unitK) {
    int64_t padded = matrix.getPaddedGroup(), size = matrix.groupSize;
    int64_t first = unitK * Placement::unitK, end = first + Placement::unitK;
    int64_t lastGroup = std::min(matrix.k / size, ceilDiv(end, padded));
    for (int64_t group = first / padded; group < lastGroup; ++group) {
      int64_t from = std::max(group * padded, first);
      int64_t to = std::min(group * padded + size, end);
      if (from < to)
        add({group * size + from - group * padded, from - first, to - from});
    }
  }

  /// Whether all 64 codes are neighbours.
  bool areWhole() const { return segments[0].length == Placement::unitK; }
  int64_t getFirstColumn() const { return segments[0].column; }
  const Segment *begin() const { return segments.data(); }
  const Segment *end() const { return segments.data() + count; }

private:
  void add(const Segment &next) {
    // Groups without padding follow each other in the matrix too.
    if (count) {
      Segment &last = segments[count - 1];
      if (last.inUnit + last.length == next.inUnit) {
        last.length += next.length;
        return;
      }
    }
    segments[count++] = next;
  }

  std::array<Segment, 4> segments = {};
  size_t count = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

namespace {
/// Units that follow each other along K.
struct UnitRange {
  int64_t unitN;
  int64_t firstK;
  int64_t endK;
};
} // namespace

/// Calls `work` for all units of a matrix, on several threads.
template <typename Work>
static void forAllUnits(const Placement &placement, const CodeMatrix &matrix,
                        int numThreads, Work work) {
  // Enough that taking a share costs nothing, and few enough to divide.
  constexpr int64_t weightsPerShare = 1 << 16;
  int64_t unitWeights = int64_t(Placement::unitK) * placement.getUnitRows();
  int64_t unitsPerShare = std::max<int64_t>(1, weightsPerShare / unitWeights);
  int64_t unitsK = matrix.getNumUnitsK();
  int64_t sharesK = ceilDiv(unitsK, unitsPerShare);
  int64_t shares = matrix.getNumUnitsN(placement) * sharesK;
  std::atomic<int64_t> next = 0;
  auto run = [&] {
    for (int64_t share; (share = next.fetch_add(1)) < shares;) {
      int64_t firstK = share % sharesK * unitsPerShare;
      work(UnitRange{share / sharesK, firstK,
                     std::min(firstK + unitsPerShare, unitsK)});
    }
  };
  if (numThreads == 0)
    numThreads = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (int64_t i = 1; i < std::min<int64_t>(numThreads, shares); ++i)
    others.emplace_back(run);
  run();
  for (std::thread &thread : others)
    thread.join();
}

/// Whether a row of 64 codes has a bit of `mask`.
static bool hasBits(const uint8_t *row, uint64_t mask) {
  uint64_t any = 0;
  for (int i = 0; i < Placement::unitK; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, row + i, 8);
    any |= eight;
  }
  return (any & mask) != 0;
}

static Error describeWideCode(const Placement &placement,
                              const CodeMatrix &matrix, const uint8_t *codes,
                              int64_t rowStride) {
  int max = (1 << placement.getFormat().bits) - 1;
  std::string allowed = "codes: must be in 0.." + std::to_string(max) +
                        " for " + placement.name();
  for (int64_t row = 0; row < matrix.n; ++row)
    for (int64_t column = 0; column < matrix.k; ++column)
      if (int code = codes[row * rowStride + column]; code > max)
        return {allowed + ", got " + std::to_string(code) + " at [" +
                std::to_string(row) + ", " + std::to_string(column) + "]"};
  return {allowed + "; they changed while they were packed"};
}

Result<bool> lowlp::packCodes(const Placement &placement,
                              const CodeMatrix &matrix, const uint8_t *codes,
                              int64_t rowStride, uint8_t flip, uint32_t *packed,
                              int numThreads) {
  PlaneMoves moves(placement, PlaneMoves::Direction::Pack, flip);
  UnitAccess access(placement);
  int64_t wordsPerUnit = int64_t(Placement::lanes) * placement.getNumWords();
  int unitRows = placement.getUnitRows();
  uint64_t beyondCode =
      0x0101010101010101u *
      (0xff >> placement.getFormat().bits << placement.getFormat().bits);
  std::atomic<bool> hasWideCode = false;
  forAllUnits(placement, matrix, numThreads, [&](UnitRange range) {
    Planes weights, bytes;
    std::array<uint8_t, Placement::unitK> padded;
    int64_t firstRow = range.unitN * unitRows;
    int64_t rows = std::min<int64_t>(unitRows, matrix.n - firstRow);
    int64_t firstUnit = range.unitN * matrix.getNumUnitsK() + range.firstK;
    uint32_t *words = packed + firstUnit * wordsPerUnit;
    bool wide = false;
    for (int64_t unitK = range.firstK; unitK < range.endK; ++unitK) {
      Segments segments(matrix, unitK);
      padded.fill(0);
      for (int row = 0; row < unitRows; ++row) {
        const uint8_t *source = codes + (firstRow + row) * rowStride;
        if (row < rows && segments.areWhole()) {
          source += segments.getFirstColumn();
        } else {
          if (row == rows)
            padded.fill(0);
          if (row < rows)
            for (const Segment &segment : segments)
              std::memcpy(&padded[segment.inUnit], source + segment.column,
                          segment.length);
          source = padded.data();
        }
        wide |= hasBits(source, beyondCode);
        access.scatterRow(source, &weights[getFirstPlane(placement, row)],
                          getFirstLane(row));
      }
      moves.apply(weights, bytes);
      access.joinWords(bytes, placement.getNumWords(), words);
      words += wordsPerUnit;
    }
    if (wide)
      hasWideCode = true;
  });
  if (hasWideCode)
    return describeWideCode(placement, matrix, codes, rowStride);
  return true;
}

void lowlp::unpackCodes(const Placement &placement, const CodeMatrix &matrix,
                        const uint32_t *packed, uint8_t flip, uint8_t *codes,
                        int64_t rowStride, int numThreads) {
  PlaneMoves moves(placement, PlaneMoves::Direction::Unpack, flip);
  UnitAccess access(placement);
  int64_t wordsPerUnit = int64_t(Placement::lanes) * placement.getNumWords();
  int unitRows = placement.getUnitRows();
  forAllUnits(placement, matrix, numThreads, [&](UnitRange range) {
    Planes weights, bytes;
    std::array<uint8_t, Placement::unitK> padded;
    int64_t firstRow = range.unitN * unitRows;
    int64_t rows = std::min<int64_t>(unitRows, matrix.n - firstRow);
    int64_t firstUnit = range.unitN * matrix.getNumUnitsK() + range.firstK;
    const uint32_t *words = packed + firstUnit * wordsPerUnit;
    for (int64_t unitK = range.firstK; unitK < range.endK; ++unitK) {
      Segments segments(matrix, unitK);
      access.splitWords(words, placement.getNumWords(), bytes);
      words += wordsPerUnit;
      moves.apply(bytes, weights);
      for (int row = 0; row < rows; ++row) {
        const Plane *planes = &weights[getFirstPlane(placement, row)];
        uint8_t *target = codes + (firstRow + row) * rowStride;
        if (segments.areWhole()) {
          access.gatherRow(planes, getFirstLane(row),
                           target + segments.getFirstColumn());
          continue;
        }
        access.gatherRow(planes, getFirstLane(row), padded.data());
        for (const Segment &segment : segments)
          std::memcpy(target + segment.column, &padded[segment.inUnit],
                      segment.length);
      }
    }
  });
}
