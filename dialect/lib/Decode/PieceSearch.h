//===- PieceSearch.h - Integers as sums of pieces ---------------*- C++ -*-===//
//
// Bits of an integer that lie in one word as far from each other as they should
// be are a piece. A piece in the window of a word, or of a rotated one, is
// taken out by one mask: it is a number, a power of two off. Products by powers
// of two in another pipe even that out and add up the pieces. So what is to be
// found is how each word is rotated and which power of two each row of slots
// keeps.
//
// A byte of a half, picked by one PRMT, holds its pieces and nothing else: one
// of them is the byte minus the others.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_DECODE_PIECESEARCH_H
#define LOWLP_LIB_DECODE_PIECESEARCH_H

#include "Endings.h"
#include "Period.h"

#include <optional>

namespace lowlp {

/// Bits of a slot's codes in one word.
struct Piece {
  int word;
  /// Where bit 0 of the code would be, modulo 32.
  int origin;
  int slot;
  /// Lowest and highest bit of the code, and all of them.
  int low, high;
  uint32_t bits;
};

/// How a word is made available.
struct WordView {
  /// Amounts by which it is rotated, 0 first.
  std::vector<int> rotations = {0};
  /// The byte from this bit on is picked by PRMT; -1 if none.
  int byte = -1;
};

class PiecePlan {
public:
  /// None where parts do not lie alike, or where no rotations bring all pieces
  /// in the window. Requires: `homes.kind` Linear, and FMAs.
  static std::optional<PiecePlan> search(const Period &period,
                                         const Homes &homes,
                                         DecodeEnding ending,
                                         const DecodeRates &rates);

  int emit(Sequence &sequence, int block, int index, int scale) const;
  const std::vector<RowForm> &getRows() const { return rows; }
  /// Of the first block.
  int getCost() const { return cost; }

private:
  PiecePlan(const Period &period, const Homes &homes, DecodeEnding ending,
            const DecodeRates &rates)
      : period(period), homes(homes), ending(ending), rates(rates) {}

  bool findPieces();
  bool isInWindow(const Piece &piece, int shift, int window) const;
  bool isInByte(const Piece &piece, int byte) const;
  std::vector<int> getShifts(const Piece &piece, const WordView &view,
                             int window) const;
  std::vector<int> chooseShifts(int slot, const RowForm &form) const;
  bool isByteWhole(int word, int byte) const;
  std::vector<WordView> getViews(int word) const;
  int countWord(int word) const;
  int countSlot(int slot, const RowForm &form) const;
  int chooseRows();
  bool isRemainder(size_t piece, const RowForm &form) const;
  int emitPiece(Sequence &sequence, int block, size_t piece, int shift,
                const RowForm &form, DecodeOperand sum) const;

  const Period &period;
  Homes homes;
  DecodeEnding ending;
  DecodeRates rates;
  std::vector<Piece> pieces;
  std::vector<std::vector<size_t>> piecesOfSlot, piecesOfWord;
  std::vector<WordView> views;
  std::vector<RowForm> rows;
  int cost = 0;
};

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_PIECESEARCH_H
