//===- ByteIndices.h - indices of tables, put together in bytes -*- C++ -*-===//
//
// Codes of 3, 5, 6 and 7 bits lie as slices of 4, 2 and 1 bits, each in words
// of its own, one index after the other. To take each slice of each index to
// the address on its own costs a shift and a `lop3`. Four indices at a time are
// cheaper. For 16 indices, words are made that have in byte j what belongs to
// indices 4 j to 4 j + 3:
//
//   4 bits   two words: bytes 0 and 2 of two words, and bytes 1 and 3    2 PRMT
//   2 bits   the word as it is
//   1 bit    half a word, a nibble in each byte            PRMT, shift and LOP3
//
// From there a shift and a LOP3 take a slice of the indices 4 j + r to its
// place in byte j of word r. Where the address has the index within a byte, one
// PRMT takes byte j out of word r.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_ANALYSIS_BYTEINDICES_H
#define LOWLP_ANALYSIS_BYTEINDICES_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace lowlp {

/// How indices of up to 8 bits get into bytes of words.
class ByteIndices {
public:
  /// Indices in one word.
  static constexpr int64_t perWord = 4;

  /// Where an index is.
  struct Place {
    int64_t word, byte;
  };

  /// Of `numIndices` indices in slices of `widths` bits, the low bits first,
  /// which are the bits of an address from `target` on, if these are one run.
  /// None where slices do not fit bytes or each is better moved on its own.
  static std::optional<ByteIndices> get(llvm::ArrayRef<int64_t> widths,
                                        int64_t numIndices,
                                        std::optional<int64_t> target);

  llvm::ArrayRef<int64_t> getWidths() const { return widths; }
  int64_t getIndexBits() const;
  int64_t getNumIndices() const { return numIndices; }
  /// Words that are made at once, of four times as many indices.
  int64_t getWordsOfGroup() const { return numIndices > 8 ? 4 : 2; }
  int64_t getNumGroups() const;
  /// Whether the words that hold the indices are in bytes as they are.
  bool areWhole() const { return widths.size() == 1; }

  Place getPlace(int64_t index) const;
  /// The bit of its byte from which on an index lies.
  int64_t getFirstBit() const { return firstBit; }
  /// The byte of the address that has the index where its own byte has it.
  std::optional<int64_t> getByteOfAddress() const { return byteOfAddress; }

  /// How far to the left a slice of the indices of word r moves within its
  /// byte.
  int64_t getShift(unsigned slice, int64_t r) const;

  /// Instructions of the ALU for an index up to its address: masks, shifts and
  /// permutations.
  double countInstructions() const;

private:
  llvm::SmallVector<int64_t> widths;
  int64_t numIndices = 0, firstBit = 0;
  std::optional<int64_t> byteOfAddress;
};

} // namespace lowlp

#endif // LOWLP_ANALYSIS_BYTEINDICES_H
