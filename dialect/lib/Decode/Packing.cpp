//===- Packing.cpp - Codes of a matrix to packed words and back -----------===//
//
// Units are shared out to threads, some along K at a time. Where the codes of a
// row of a unit are bytes inside of the matrix they are read in place, else
// copied together, low bytes and high bytes apart; UnitPlanes.h does the rest,
// for all lanes of a unit at once.
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

int64_t CodeMatrix::getNumUnitsN(const Placement &placement) const {
  return ceilDiv(n, placement.getUnitRows());
}

int64_t CodeMatrix::getNumUnitsK(const Placement &placement) const {
  return ceilDiv(k, placement.getUnitCodes());
}

int64_t CodeMatrix::getNumPackedWords(const Placement &placement) const {
  return getNumUnitsN(placement) * getNumUnitsK(placement) *
         placement.getNumWords() * FragmentFamily::lanes;
}

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
  int64_t unitWeights = int64_t(placement.getUnitK()) * placement.getUnitRows();
  int64_t unitsPerShare = std::max<int64_t>(1, weightsPerShare / unitWeights);
  int64_t unitsK = matrix.getNumUnitsK(placement);
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

/// Whether one of `count` bytes of a row of codes has a bit of `mask`.
static bool hasBits(const uint8_t *row, int count, uint64_t mask) {
  uint64_t any = 0;
  for (int i = 0; i < count; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, row + i, 8);
    any |= eight;
  }
  return (any & mask) != 0;
}

static Error describeWideCode(const Placement &placement,
                              const CodeMatrix &matrix, const uint8_t *codes,
                              int64_t rowStride) {
  int codeBytes = placement.getFormat().getCodeBytes();
  int max = (1 << placement.getFormat().bits) - 1;
  std::string allowed = "codes: must be in 0.." + std::to_string(max) +
                        " for " + placement.name();
  for (int64_t row = 0; row < matrix.n; ++row)
    for (int64_t column = 0; column < matrix.k; ++column) {
      const uint8_t *bytes = codes + row * rowStride + column * codeBytes;
      int code = codeBytes == 1 ? bytes[0] : bytes[0] | bytes[1] << 8;
      if (code > max)
        return {allowed + ", got " + std::to_string(code) + " at [" +
                std::to_string(row) + ", " + std::to_string(column) + "]"};
    }
  return {allowed + "; they changed while they were packed"};
}

namespace {
/// The codes of a row that are in a unit, and the planes of their bytes.
class UnitRow {
public:
  UnitRow(const Placement &placement, const CodeMatrix &matrix, int64_t unitK)
      : codeBytes(placement.getFormat().getCodeBytes()),
        numWeights(placement.getNumSlots() * placement.getNumParts()),
        width(placement.getUnitCodes()), first(unitK * width),
        count(std::min<int64_t>(width, matrix.k - first)) {
    bytes.fill(0);
  }

  /// Whether the codes are read where they are.
  bool isInPlace() const {
    return codeBytes == 1 && count == width && width % 8 == 0;
  }
  int getCodeBytes() const { return codeBytes; }
  /// The plane of the first weight's byte.
  int getPlane(int firstPlane, int byte) const {
    return firstPlane + byte * numWeights;
  }

  /// One byte of each code of the row, padded.
  const uint8_t *gather(const uint8_t *row, int byte) {
    row += first * codeBytes;
    if (isInPlace())
      return row;
    for (int64_t i = 0; i < count; ++i)
      bytes[i] = row[i * codeBytes + byte];
    return bytes.data();
  }
  /// What a row beyond the matrix has.
  const uint8_t *gatherPadding() {
    bytes.fill(0);
    return bytes.data();
  }

  /// Where `scatter` takes the bytes from.
  uint8_t *getTarget(uint8_t *row) {
    return isInPlace() ? row + first : bytes.data();
  }
  void scatter(uint8_t *row, int byte) const {
    if (isInPlace())
      return;
    row += first * codeBytes;
    for (int64_t i = 0; i < count; ++i)
      row[i * codeBytes + byte] = bytes[i];
  }

private:
  int codeBytes;
  int numWeights;
  int64_t width, first, count;
  std::array<uint8_t, Placement::maxUnitCodes> bytes;
};
} // namespace

Result<bool> lowlp::packCodes(const Placement &placement,
                              const CodeMatrix &matrix, const uint8_t *codes,
                              int64_t rowStride, uint8_t flip, uint32_t *packed,
                              int numThreads) {
  PlaneMoves moves(placement, PlaneMoves::Direction::Pack, flip);
  UnitAccess access(placement);
  int64_t wordsPerUnit =
      int64_t(FragmentFamily::lanes) * placement.getNumWords();
  int unitRows = placement.getUnitRows();
  int topBits = (placement.getFormat().bits - 1) % 8 + 1;
  uint64_t beyondCode = 0x0101010101010101u * (0xff >> topBits << topBits);
  std::atomic<bool> hasWideCode = false;
  forAllUnits(placement, matrix, numThreads, [&](UnitRange range) {
    Planes weights, bytes;
    int64_t firstRow = range.unitN * unitRows;
    int64_t rows = std::min<int64_t>(unitRows, matrix.n - firstRow);
    int64_t firstUnit =
        range.unitN * matrix.getNumUnitsK(placement) + range.firstK;
    uint32_t *words = packed + firstUnit * wordsPerUnit;
    bool wide = false;
    for (int64_t unitK = range.firstK; unitK < range.endK; ++unitK) {
      UnitRow unitRow(placement, matrix, unitK);
      for (int row = 0; row < unitRows; ++row)
        for (int byte = 0; byte < unitRow.getCodeBytes(); ++byte) {
          const uint8_t *source =
              row < rows
                  ? unitRow.gather(codes + (firstRow + row) * rowStride, byte)
                  : unitRow.gatherPadding();
          if (byte == unitRow.getCodeBytes() - 1)
            wide |= hasBits(source, placement.getUnitCodes(), beyondCode);
          int plane = unitRow.getPlane(getFirstPlane(placement, row), byte);
          access.scatterRow(source, &weights[plane], getFirstLane(row), access);
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
  int64_t wordsPerUnit =
      int64_t(FragmentFamily::lanes) * placement.getNumWords();
  int unitRows = placement.getUnitRows();
  forAllUnits(placement, matrix, numThreads, [&](UnitRange range) {
    Planes weights, bytes;
    int64_t firstRow = range.unitN * unitRows;
    int64_t rows = std::min<int64_t>(unitRows, matrix.n - firstRow);
    int64_t firstUnit =
        range.unitN * matrix.getNumUnitsK(placement) + range.firstK;
    const uint32_t *words = packed + firstUnit * wordsPerUnit;
    for (int64_t unitK = range.firstK; unitK < range.endK; ++unitK) {
      UnitRow unitRow(placement, matrix, unitK);
      access.splitWords(words, placement.getNumWords(), bytes);
      words += wordsPerUnit;
      moves.apply(bytes, weights);
      for (int row = 0; row < rows; ++row)
        for (int byte = 0; byte < unitRow.getCodeBytes(); ++byte) {
          uint8_t *target = codes + (firstRow + row) * rowStride;
          int plane = unitRow.getPlane(getFirstPlane(placement, row), byte);
          access.gatherRow(&weights[plane], getFirstLane(row),
                           unitRow.getTarget(target), access);
          unitRow.scatter(target, byte);
        }
    }
  });
}
