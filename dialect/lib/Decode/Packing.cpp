//===- Packing.cpp - Codes of a matrix to packed words and back -----------===//
//
// One unit at a time, all 32 lanes at once. A plane holds one byte of each
// lane:
//
//   rows of 64 codes -> a plane for each weight of a lane
//                    -> a plane for each byte of a lane's words -> words
//
// The step in the middle is a list of moves: all bits that go the same distance
// from one plane to another are shifted and masked together. A shift of 8 bytes
// as one number carries bits to neighbours only where the mask drops them.
//
// Unpacking takes the same steps backwards.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Decode/Packing.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <tuple>

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

int64_t CodeMatrix::getPaddedColumns() const { return getNumUnitsK() * 64; }

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
  int inUnit;
  int length;
};
} // namespace

/// The codes of the matrix in the 64 columns of a unit.
static std::vector<Segment> getSegments(const CodeMatrix &matrix,
                                        int64_t unit) {
  int64_t padded = matrix.getPaddedGroup();
  int64_t groups = matrix.k / matrix.groupSize;
  std::vector<Segment> segments;
  int64_t first = unit * Placement::unitK, end = first + Placement::unitK;
  for (int64_t group = first / padded; group < groups && group * padded < end;
       ++group) {
    int64_t from = std::max(group * padded, first);
    int64_t to = std::min(group * padded + matrix.groupSize, end);
    if (from >= to)
      continue;
    int64_t column = group * matrix.groupSize + from - group * padded;
    // Groups without padding follow each other in the matrix too.
    if (!segments.empty() &&
        segments.back().column + segments.back().length == column &&
        segments.back().inUnit + segments.back().length == from - first)
      segments.back().length += static_cast<int>(to - from);
    else
      segments.push_back({column, static_cast<int>(from - first),
                          static_cast<int>(to - from)});
  }
  return segments;
}

//===----------------------------------------------------------------------===//
// Moves of bits
//===----------------------------------------------------------------------===//

std::vector<BitMove> lowlp::getBitMoves(const Placement &placement) {
  std::vector<BitMove> moves;
  int parts = placement.getNumParts();
  for (int weight = 0; weight < placement.getNumSlots() * parts; ++weight) {
    size_t firstMove = moves.size();
    for (int bit = 0; bit < placement.getFormat().bits; ++bit) {
      BitPlace place = placement.getPlace(weight / parts, weight % parts, bit);
      int byte = place.word * 4 + place.bit / 8, shift = place.bit % 8 - bit;
      auto found = std::find_if(
          moves.begin() + firstMove, moves.end(), [&](const BitMove &move) {
            return move.byte == byte && move.shift == shift;
          });
      if (found == moves.end())
        found = moves.insert(moves.end(), {weight, byte, shift, 0});
      found->codeMask |= static_cast<uint8_t>(1u << bit);
    }
  }
  std::sort(moves.begin(), moves.end(), [](const BitMove &a, const BitMove &b) {
    return std::tie(a.byte, a.shift, a.weight) <
           std::tie(b.byte, b.shift, b.weight);
  });
  return moves;
}

namespace {
/// A byte of each lane.
struct alignas(32) Plane {
  std::array<uint64_t, 4> lanes;
  uint8_t *bytes() { return reinterpret_cast<uint8_t *>(lanes.data()); }
  const uint8_t *bytes() const {
    return reinterpret_cast<const uint8_t *>(lanes.data());
  }
};
static_assert(sizeof(Plane) == Placement::lanes);

/// At most 32 weights of a lane for each of 4 row tiles; as many bytes of
/// words.
constexpr int kMaxPlanes = 128;
using Planes = std::array<Plane, kMaxPlanes>;

/// How planes are made of others.
class PlaneMoves {
public:
  enum class Direction { Pack, Unpack };

  PlaneMoves(const Placement &placement, Direction direction, uint8_t flip) {
    bool pack = direction == Direction::Pack;
    std::vector<BitMove> moves = getBitMoves(placement);
    targets.resize(pack ? placement.getNumWords() * 4
                        : placement.getNumSlots() * placement.getNumParts());
    for (size_t plane = 0; plane < targets.size(); ++plane) {
      Target &target = targets[plane];
      for (bool left : {false, true}) {
        for (const BitMove &move : moves) {
          if (static_cast<size_t>(pack ? move.byte : move.weight) != plane)
            continue;
          int shift = pack ? move.shift : -move.shift;
          if ((shift > 0) != left)
            continue;
          unsigned byteMask = shiftLeft(move.codeMask, move.shift);
          all.push_back({pack ? move.weight : move.byte, std::abs(shift),
                         repeat(pack ? byteMask : move.codeMask)});
          target.flip |=
              repeat(pack ? shiftLeft(move.codeMask & flip, move.shift)
                          : move.codeMask & flip);
        }
        (left ? target.end : target.firstLeft) = all.size();
      }
    }
  }

  void apply(const Planes &from, Planes &to) const {
    size_t at = 0;
    for (size_t plane = 0; plane < targets.size(); ++plane) {
      const Target &target = targets[plane];
      std::array<uint64_t, 4> sum;
      sum.fill(target.flip);
      for (; at < target.firstLeft; ++at)
        for (int i = 0; i < 4; ++i)
          sum[i] ^=
              from[all[at].source].lanes[i] >> all[at].shift & all[at].mask;
      for (; at < target.end; ++at)
        for (int i = 0; i < 4; ++i)
          sum[i] ^=
              from[all[at].source].lanes[i] << all[at].shift & all[at].mask;
      to[plane].lanes = sum;
    }
  }

private:
  struct Move {
    int source;
    int shift;
    uint64_t mask;
  };
  /// Its moves follow those of the target before it: first to the right.
  struct Target {
    size_t firstLeft = 0;
    size_t end = 0;
    uint64_t flip = 0;
  };

  static unsigned shiftLeft(unsigned bits, int by) {
    return by >= 0 ? bits << by : bits >> -by;
  }
  static uint64_t repeat(unsigned byte) { return byte * 0x0101010101010101u; }

  std::vector<Move> all;
  std::vector<Target> targets;
};
} // namespace

//===----------------------------------------------------------------------===//
// Rows and planes
//===----------------------------------------------------------------------===//
//
// In a row of a tile, weight k = L * j + part with j = 8 s + 4 h + lane % 4 is
// in the slot of s and h. So the weights of one part, four at a time, are the
// bytes of four neighbouring lanes in one plane.

template <int L>
static void scatterRow(const uint8_t *row, Plane *planes, int lane) {
  std::array<uint8_t, Placement::unitK> parts;
  constexpr int perPart = Placement::unitK / L;
  for (int part = 0; part < L; ++part)
    for (int j = 0; j < perPart; ++j)
      parts[part * perPart + j] = row[j * L + part];
  for (int slot = 0; slot < perPart / 4; ++slot)
    for (int part = 0; part < L; ++part)
      std::memcpy(planes[slot * 2 * L + part].bytes() + lane,
                  &parts[part * perPart + slot * 4], 4);
}

template <int L>
static void gatherRow(const Plane *planes, int lane, uint8_t *row) {
  std::array<uint8_t, Placement::unitK> parts;
  constexpr int perPart = Placement::unitK / L;
  for (int slot = 0; slot < perPart / 4; ++slot)
    for (int part = 0; part < L; ++part)
      std::memcpy(&parts[part * perPart + slot * 4],
                  planes[slot * 2 * L + part].bytes() + lane, 4);
  for (int part = 0; part < L; ++part)
    for (int j = 0; j < perPart; ++j)
      row[j * L + part] = parts[part * perPart + j];
}

/// The plane of part 0 of the first slot of a row of a unit; its slots are
/// every second one from there.
static int getFirstPlane(const Placement &placement, int row) {
  int slot = row / 16 * placement.getNumSteps() * 4 + row / 8 % 2;
  return slot * placement.getNumParts();
}

//===----------------------------------------------------------------------===//
// Planes and words
//===----------------------------------------------------------------------===//

template <int V>
static void joinWords(const Planes &planes, int numWords, uint32_t *words) {
  for (int word = 0; word < numWords; word += V, words += Placement::lanes * V)
    for (int i = 0; i < V; ++i) {
      const Plane *bytes = &planes[(word + i) * 4];
      for (int lane = 0; lane < Placement::lanes; ++lane)
        words[lane * V + i] =
            bytes[0].bytes()[lane] | bytes[1].bytes()[lane] << 8 |
            bytes[2].bytes()[lane] << 16 |
            static_cast<uint32_t>(bytes[3].bytes()[lane]) << 24;
    }
}

template <int V>
static void splitWords(const uint32_t *words, int numWords, Planes &planes) {
  for (int word = 0; word < numWords; word += V, words += Placement::lanes * V)
    for (int i = 0; i < V; ++i)
      for (int byte = 0; byte < 4; ++byte) {
        uint8_t *plane = planes[(word + i) * 4 + byte].bytes();
        for (int lane = 0; lane < Placement::lanes; ++lane)
          plane[lane] = static_cast<uint8_t>(words[lane * V + i] >> 8 * byte);
      }
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// Calls `work(unitN, firstUnitK, endUnitK)` for all units, on several threads.
template <typename Work>
static void forAllUnits(const Placement &placement, const CodeMatrix &matrix,
                        int numThreads, Work work) {
  // Enough that taking a share costs nothing, and few enough to divide.
  constexpr int64_t weightsPerShare = 1 << 16;
  int64_t unitWeights = placement.getUnitRows() * Placement::unitK;
  int64_t perShare = std::max<int64_t>(1, weightsPerShare / unitWeights);
  int64_t unitsK = matrix.getNumUnitsK();
  int64_t sharesK = ceilDiv(unitsK, perShare);
  int64_t shares = matrix.getNumUnitsN(placement) * sharesK;
  std::atomic<int64_t> next = 0;
  auto run = [&] {
    for (int64_t share; (share = next.fetch_add(1)) < shares;) {
      int64_t first = share % sharesK * perShare;
      work(share / sharesK, first, std::min(first + perShare, unitsK));
    }
  };
  int64_t wanted = numThreads > 0
                       ? numThreads
                       : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  for (int64_t i = 1; i < std::min(wanted, shares); ++i)
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
  for (int64_t row = 0; row < matrix.n; ++row)
    for (int64_t column = 0; column < matrix.k; ++column)
      if (int code = codes[row * rowStride + column]; code > max)
        return {"codes: must be in 0.." + std::to_string(max) + " for " +
                placement.name() + ", got " + std::to_string(code) + " at [" +
                std::to_string(row) + ", " + std::to_string(column) + "]"};
  return {"codes: changed while they were packed"};
}

Result<bool> lowlp::packCodes(const Placement &placement,
                              const CodeMatrix &matrix, const uint8_t *codes,
                              int64_t rowStride, uint8_t flip, uint32_t *packed,
                              int numThreads) {
  PlaneMoves moves(placement, PlaneMoves::Direction::Pack, flip);
  int numWords = placement.getNumWords(),
      access = placement.getWordsPerAccess();
  int unitRows = placement.getUnitRows();
  auto scatter = placement.getNumParts() == 2 ? scatterRow<2> : scatterRow<4>;
  auto join = access == 4   ? joinWords<4>
              : access == 2 ? joinWords<2>
                            : joinWords<1>;
  uint64_t tooWide =
      0x0101010101010101u * (0xff & ~((1u << placement.getFormat().bits) - 1));
  std::atomic<bool> isWide = false;
  forAllUnits(placement, matrix, numThreads,
              [&](int64_t unitN, int64_t firstK, int64_t endK) {
                Planes weights, bytes;
                alignas(64) std::array<uint8_t, Placement::unitK> padded;
                int64_t firstRow = unitN * unitRows;
                int rows = static_cast<int>(
                    std::min<int64_t>(unitRows, matrix.n - firstRow));
                uint32_t *words =
                    packed + (unitN * matrix.getNumUnitsK() + firstK) *
                                 numWords * Placement::lanes;
                bool wide = false;
                for (int64_t unitK = firstK; unitK < endK;
                     ++unitK, words += numWords * Placement::lanes) {
                  std::vector<Segment> segments = getSegments(matrix, unitK);
                  bool whole = segments.front().length == Placement::unitK;
                  padded.fill(0);
                  for (int row = 0; row < unitRows; ++row) {
                    const uint8_t *source = padded.data();
                    if (row == rows)
                      padded.fill(0);
                    if (row < rows && whole) {
                      source = codes + (firstRow + row) * rowStride +
                               segments.front().column;
                    } else if (row < rows) {
                      for (const Segment &segment : segments)
                        std::memcpy(&padded[segment.inUnit],
                                    codes + (firstRow + row) * rowStride +
                                        segment.column,
                                    segment.length);
                    }
                    wide |= hasBits(source, tooWide);
                    scatter(source, &weights[getFirstPlane(placement, row)],
                            row % 8 * 4);
                  }
                  moves.apply(weights, bytes);
                  join(bytes, numWords, words);
                }
                if (wide)
                  isWide = true;
              });
  if (isWide)
    return describeWideCode(placement, matrix, codes, rowStride);
  return true;
}

void lowlp::unpackCodes(const Placement &placement, const CodeMatrix &matrix,
                        const uint32_t *packed, uint8_t flip, uint8_t *codes,
                        int64_t rowStride, int numThreads) {
  PlaneMoves moves(placement, PlaneMoves::Direction::Unpack, flip);
  int numWords = placement.getNumWords(),
      access = placement.getWordsPerAccess();
  int unitRows = placement.getUnitRows();
  auto gather = placement.getNumParts() == 2 ? gatherRow<2> : gatherRow<4>;
  auto split = access == 4   ? splitWords<4>
               : access == 2 ? splitWords<2>
                             : splitWords<1>;
  forAllUnits(
      placement, matrix, numThreads,
      [&](int64_t unitN, int64_t firstK, int64_t endK) {
        Planes weights, bytes;
        alignas(64) std::array<uint8_t, Placement::unitK> padded;
        int64_t firstRow = unitN * unitRows;
        int rows =
            static_cast<int>(std::min<int64_t>(unitRows, matrix.n - firstRow));
        const uint32_t *words =
            packed + (unitN * matrix.getNumUnitsK() + firstK) * numWords *
                         Placement::lanes;
        for (int64_t unitK = firstK; unitK < endK;
             ++unitK, words += numWords * Placement::lanes) {
          std::vector<Segment> segments = getSegments(matrix, unitK);
          split(words, numWords, bytes);
          moves.apply(bytes, weights);
          for (int row = 0; row < rows; ++row) {
            const Plane *planes = &weights[getFirstPlane(placement, row)];
            uint8_t *target = codes + (firstRow + row) * rowStride;
            if (segments.front().length == Placement::unitK) {
              gather(planes, row % 8 * 4, target + segments.front().column);
              continue;
            }
            gather(planes, row % 8 * 4, padded.data());
            for (const Segment &segment : segments)
              std::memcpy(target + segment.column, &padded[segment.inUnit],
                          segment.length);
          }
        }
      });
}
