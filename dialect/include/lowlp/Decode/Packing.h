//===- Packing.h - Codes of a matrix to packed words and back ---*- C++ -*-===//
//
// A matrix of codes [n, k], one a byte, in groups of `groupSize` weights of a
// row. Packed, each group is padded at its end to 16, 32 or a multiple of 64
// weights, and a row of groups to a multiple of 64; the rows are padded to a
// multiple of the unit's. Padding holds the code 0. What a unit is, and where
// its words lie, is said in Placement.h.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_DECODE_PACKING_H
#define LOWLP_DECODE_PACKING_H

#include "lowlp/Decode/Placement.h"

namespace lowlp {

/// The shape of a matrix of codes. Requires n, k >= 1 and that the group size
/// divides k.
struct CodeMatrix {
  int64_t n;
  int64_t k;
  int64_t groupSize;

  /// Weights that a group takes in packed words.
  int64_t getPaddedGroup() const { return padGroup(groupSize); }
  /// Units along N and along K.
  int64_t getNumUnitsN(const Placement &placement) const;
  int64_t getNumUnitsK() const;
  int64_t getNumPackedWords(const Placement &placement) const;

  /// The least of 16, 32 and the multiples of 64 that holds a group.
  static int64_t padGroup(int64_t groupSize);
};

/// Bits of the same distance of one code and one byte of a lane's words, packed
/// all at once.
struct BitMove {
  /// slot * parts + part.
  int weight;
  /// 4 * word + byte of the word, 0 the lowest.
  int byte;
  /// How far bits move upwards from the code to the byte; -7 to 7.
  int shift;
  /// The bits' places in the code.
  uint8_t codeMask;
};

/// The moves that pack a lane's share of a unit, by byte; each bit once.
std::vector<BitMove> getBitMoves(const Placement &placement);

/// Packs codes whose rows begin `rowStride` bytes apart into
/// `getNumPackedWords` words. What is stored of a code is `code ^ flip`: for
/// signed integers the sign bit (toStoredCode), else 0. `numThreads` 0: as many
/// as there are processors. Fails for a code of too many bits, with its place;
/// the words are then undefined.
Result<bool> packCodes(const Placement &placement, const CodeMatrix &matrix,
                       const uint8_t *codes, int64_t rowStride, uint8_t flip,
                       uint32_t *packed, int numThreads = 0);

/// The inverse; padding is not looked at.
void unpackCodes(const Placement &placement, const CodeMatrix &matrix,
                 const uint32_t *packed, uint8_t flip, uint8_t *codes,
                 int64_t rowStride, int numThreads = 0);

} // namespace lowlp

#endif // LOWLP_DECODE_PACKING_H
