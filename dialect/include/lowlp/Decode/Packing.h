//===- Packing.h - Codes of a matrix to packed words and back ---*- C++ -*-===//
//
// A matrix of codes [n, k], of a byte each, or of two where a code has more
// than 8 bits. Codes of vectors are columns of their own, those of one vector
// beside each other: [n, k / v * books]. Packed, a row is padded to whole
// units, and the rows are; padding holds the code 0. Groups of weights that
// share a scale are not padded: a unit may have parts of several (ADR 0029).
// What a unit is, and where its words lie, is said in Placement.h.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_DECODE_PACKING_H
#define LOWLP_DECODE_PACKING_H

#include "lowlp/Decode/Placement.h"

namespace lowlp {

/// The shape of a matrix of codes, k of them in a row. Requires n, k >= 1.
struct CodeMatrix {
  int64_t n;
  int64_t k;

  /// Units along N and along K.
  int64_t getNumUnitsN(const Placement &placement) const;
  int64_t getNumUnitsK(const Placement &placement) const;
  int64_t getNumPackedWords(const Placement &placement) const;
};

/// Bits of the same distance of one code and one byte of a lane's words, packed
/// all at once.
struct BitMove {
  /// The byte of a lane's codes: slot * parts + part for the low bytes, and
  /// after them those of the high ones where codes have two.
  int codeByte;
  /// 4 * word + byte of the word, 0 the lowest.
  int byte;
  /// How far bits move upwards from the code's byte to the other; -7 to 7.
  int shift;
  /// The bits' places in the code's byte.
  uint8_t codeMask;
};

/// The moves that pack a lane's share of a unit, by byte; each bit once.
std::vector<BitMove> getBitMoves(const Placement &placement);

/// Packs codes whose rows begin `rowStride` bytes apart into
/// `getNumPackedWords` words; codes of two bytes have the low one first. What
/// is stored of a code is `code ^ flip`: for signed integers the sign bit
/// (toStoredCode), else 0. `numThreads` 0: as many as there are processors.
/// Fails for a code of too many bits, with its place; the words are then
/// undefined.
Result<bool> packCodes(const Placement &placement, const CodeMatrix &matrix,
                       const uint8_t *codes, int64_t rowStride, uint8_t flip,
                       uint32_t *packed, int numThreads = 0);

/// The inverse; padding is not looked at.
void unpackCodes(const Placement &placement, const CodeMatrix &matrix,
                 const uint32_t *packed, uint8_t flip, uint8_t *codes,
                 int64_t rowStride, int numThreads = 0);

} // namespace lowlp

#endif // LOWLP_DECODE_PACKING_H
