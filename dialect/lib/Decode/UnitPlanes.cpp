//===- UnitPlanes.cpp - A unit of weights, one byte of all lanes at a time ===//
//
//   rows of codes    -> a plane for each code of a lane
//                    -> a plane for each byte of a lane's words -> words
//
// The step in the middle is a list of moves: all bits that go the same distance
// from one plane to another are shifted and masked together. A shift of 8 bytes
// as one number carries bits to neighbours only where the mask drops them.
//
//===----------------------------------------------------------------------===//
#include "UnitPlanes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>

using namespace lowlp;

//===----------------------------------------------------------------------===//
// Moves of bits
//===----------------------------------------------------------------------===//

std::vector<BitMove> lowlp::getBitMoves(const Placement &placement) {
  std::vector<BitMove> moves;
  int parts = placement.getNumParts();
  int numWeights = placement.getNumSlots() * parts;
  for (int weight = 0; weight < numWeights; ++weight) {
    size_t firstMove = moves.size();
    for (int bit = 0; bit < placement.getFormat().bits; ++bit) {
      BitPlace place = placement.getPlace(weight / parts, weight % parts, bit);
      int codeByte = weight + bit / 8 * numWeights;
      int byte = place.word * 4 + place.bit / 8;
      int shift = place.bit % 8 - bit % 8;
      auto found =
          std::find_if(moves.begin() + static_cast<std::ptrdiff_t>(firstMove),
                       moves.end(), [&](const BitMove &move) {
                         return move.codeByte == codeByte &&
                                move.byte == byte && move.shift == shift;
                       });
      if (found == moves.end())
        found = moves.insert(moves.end(), {codeByte, byte, shift, 0});
      found->codeMask |= static_cast<uint8_t>(1u << bit % 8);
    }
  }
  std::sort(moves.begin(), moves.end(), [](const BitMove &a, const BitMove &b) {
    return std::tie(a.byte, a.shift, a.codeByte) <
           std::tie(b.byte, b.shift, b.codeByte);
  });
  return moves;
}

static unsigned shiftLeft(unsigned bits, int by) {
  return by >= 0 ? bits << by : bits >> -by;
}

static uint64_t repeat(unsigned byte) { return byte * 0x0101010101010101u; }

PlaneMoves::PlaneMoves(const Placement &placement, Direction direction,
                       uint8_t flip) {
  bool pack = direction == Direction::Pack;
  std::vector<BitMove> bitMoves = getBitMoves(placement);
  int numTargets = pack ? placement.getNumWords() * 4
                        : placement.getNumSlots() * placement.getNumParts() *
                              placement.getFormat().getCodeBytes();
  targets.resize(numTargets);
  for (int plane = 0; plane < numTargets; ++plane) {
    Target &target = targets[plane];
    for (bool left : {false, true}) {
      for (const BitMove &move : bitMoves) {
        int shift = pack ? move.shift : -move.shift;
        if ((pack ? move.byte : move.codeByte) != plane || (shift > 0) != left)
          continue;
        unsigned mask = move.codeMask, flipped = move.codeMask & flip;
        if (pack) {
          mask = shiftLeft(mask, shift);
          flipped = shiftLeft(flipped, shift);
        }
        moves.push_back(
            {pack ? move.codeByte : move.byte, std::abs(shift), repeat(mask)});
        target.flip |= repeat(flipped);
      }
      (left ? target.end : target.firstLeft) = moves.size();
    }
  }
}

void PlaneMoves::apply(const Planes &from, Planes &to) const {
  constexpr size_t width = std::tuple_size_v<decltype(Plane::eightLanes)>;
  size_t at = 0;
  for (size_t plane = 0; plane < targets.size(); ++plane) {
    const Target &target = targets[plane];
    std::array<uint64_t, width> sum;
    sum.fill(target.flip);
    for (; at < target.firstLeft; ++at) {
      const Plane &source = from[moves[at].source];
      for (size_t i = 0; i < width; ++i)
        sum[i] ^= source.eightLanes[i] >> moves[at].shift & moves[at].mask;
    }
    for (; at < target.end; ++at) {
      const Plane &source = from[moves[at].source];
      for (size_t i = 0; i < width; ++i)
        sum[i] ^= source.eightLanes[i] << moves[at].shift & moves[at].mask;
    }
    to[plane].eightLanes = sum;
  }
}

//===----------------------------------------------------------------------===//
// Rows and planes
//===----------------------------------------------------------------------===//
//
// In a row of a tile, weight k = L * j + part with j = 8 s + 4 h + lane % 4 is
// in the slot of s and h. So the weights of one part, four at a time, are the
// bytes of four neighbouring lanes in one plane; a row has every second slot.

/// The `K` weights of a row by part; `L` of them share a register.
template <size_t L, size_t K>
using RowByPart = std::array<std::array<uint8_t, K / L>, L>;

template <size_t L, size_t K>
static void scatterRow(const uint8_t *row, Plane *planes, int lane,
                       const UnitAccess &) {
  RowByPart<L, K> parts;
  for (size_t part = 0; part < L; ++part)
    for (size_t j = 0; j < parts[part].size(); ++j)
      parts[part][j] = row[j * L + part];
  for (size_t part = 0; part < L; ++part)
    for (size_t j = 0; j < parts[part].size(); j += 4)
      std::memcpy(planes[j / 2 * L + part].bytes() + lane, &parts[part][j], 4);
}

template <size_t L, size_t K>
static void gatherRow(const Plane *planes, int lane, uint8_t *row,
                      const UnitAccess &) {
  RowByPart<L, K> parts;
  for (size_t part = 0; part < L; ++part)
    for (size_t j = 0; j < parts[part].size(); j += 4)
      std::memcpy(&parts[part][j], planes[j / 2 * L + part].bytes() + lane, 4);
  for (size_t part = 0; part < L; ++part)
    for (size_t j = 0; j < parts[part].size(); ++j)
      row[j * L + part] = parts[part][j];
}

// Codes of vectors lie likewise: vector j of a row has its codes beside each
// other, and is lane j % 4's in step j / 4.

static void scatterVectors(const uint8_t *row, Plane *planes, int lane,
                           const UnitAccess &access) {
  size_t parts = access.parts;
  for (size_t first = 0; first < access.codes;
       first += 4 * parts, planes += 2 * parts)
    for (size_t part = 0; part < parts; ++part)
      for (size_t j = 0; j < 4; ++j)
        planes[part].bytes()[lane + j] = row[first + j * parts + part];
}

static void gatherVectors(const Plane *planes, int lane, uint8_t *row,
                          const UnitAccess &access) {
  size_t parts = access.parts;
  for (size_t first = 0; first < access.codes;
       first += 4 * parts, planes += 2 * parts)
    for (size_t part = 0; part < parts; ++part)
      for (size_t j = 0; j < 4; ++j)
        row[first + j * parts + part] = planes[part].bytes()[lane + j];
}

int lowlp::getFirstPlane(const Placement &placement, int row) {
  int slotsOfTile = placement.getSlotsPerTile();
  int slot = row / 16 * slotsOfTile + row / 8 % 2;
  return slot * placement.getNumParts();
}

//===----------------------------------------------------------------------===//
// Planes and words
//===----------------------------------------------------------------------===//
//
// Memory has [words / V][lanes][V].

template <size_t V>
static void joinWords(const Planes &planes, int numWords, uint32_t *words) {
  const Plane *bytes = planes.data();
  for (int word = 0; word < numWords; ++word, bytes += 4) {
    for (size_t lane = 0; lane < FragmentFamily::lanes; ++lane)
      words[lane * V] = bytes[0].bytes()[lane] | bytes[1].bytes()[lane] << 8 |
                        bytes[2].bytes()[lane] << 16 |
                        static_cast<uint32_t>(bytes[3].bytes()[lane]) << 24;
    words += (word + 1) % V ? 1 : (FragmentFamily::lanes - 1) * V + 1;
  }
}

template <size_t V>
static void splitWords(const uint32_t *words, int numWords, Planes &planes) {
  Plane *bytes = planes.data();
  for (int word = 0; word < numWords; ++word, bytes += 4) {
    for (int byte = 0; byte < 4; ++byte)
      for (size_t lane = 0; lane < FragmentFamily::lanes; ++lane)
        bytes[byte].bytes()[lane] =
            static_cast<uint8_t>(words[lane * V] >> 8 * byte);
    words += (word + 1) % V ? 1 : (FragmentFamily::lanes - 1) * V + 1;
  }
}

template <size_t L> void UnitAccess::takeRows(int unitK) {
  // A step of four weights to a register is 32 wide, of 32 it is 256.
  constexpr size_t least = 8 * L;
  if constexpr (least > 64) {
    scatterRow = ::scatterRow<L, least>, gatherRow = ::gatherRow<L, least>;
    return;
  }
  switch (unitK) {
  case 64:
    scatterRow = ::scatterRow<L, 64>, gatherRow = ::gatherRow<L, 64>;
    break;
  case 32:
    scatterRow = ::scatterRow<L, 32>, gatherRow = ::gatherRow<L, 32>;
    break;
  default:
    scatterRow = ::scatterRow<L, least>, gatherRow = ::gatherRow<L, least>;
  }
}

UnitAccess::UnitAccess(const Placement &placement)
    : parts(placement.getNumParts()), codes(placement.getUnitCodes()) {
  if (placement.isOfVectors())
    scatterRow = scatterVectors, gatherRow = gatherVectors;
  else if (placement.getNumParts() == 32)
    takeRows<32>(placement.getUnitK());
  else if (placement.getNumParts() == 2)
    takeRows<2>(placement.getUnitK());
  else
    takeRows<4>(placement.getUnitK());
  switch (placement.getWordsPerAccess()) {
  case 1:
    joinWords = ::joinWords<1>, splitWords = ::splitWords<1>;
    break;
  case 2:
    joinWords = ::joinWords<2>, splitWords = ::splitWords<2>;
    break;
  default:
    joinWords = ::joinWords<4>, splitWords = ::splitWords<4>;
  }
}
