//===- Period.h - The part of a unit that repeats ---------------*- C++ -*-===//
//
// A placement repeats along K every 1, 2 or 4 steps, with words of its own each
// time: a block. What is found for the first block holds for the others.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_DECODE_PERIOD_H
#define LOWLP_LIB_DECODE_PERIOD_H

#include "lowlp/Decode/Placement.h"

#include <vector>

namespace lowlp {

/// The least number of steps of which the others are copies.
int getPeriod(const Placement &placement);

/// The first block of a placement. Indices of slots are those in `slots`.
class Period {
public:
  explicit Period(const Placement &placement);

  const Placement &placement;
  int numBlocks;
  /// Words of a block.
  int numWords;
  /// The block's slots, ascending.
  std::vector<int> slots;

  int getNumSlots() const { return static_cast<int>(slots.size()); }
  /// Rows of slots (2 t + r).
  size_t getNumRows() const {
    return 2 * static_cast<size_t>(placement.getNumRowTiles());
  }
  int getRow(int index) const { return placement.getRowOfSlot(slots[index]); }
  /// The slot of another block that lies as slot `index` of the first.
  int getSlot(int index, int block) const {
    return slots[index] + block * (placement.getNumSteps() / numBlocks) * 4;
  }
  BitPlace getPlace(int index, int part, int bit) const {
    return placement.getPlace(slots[index], part, bit);
  }
  /// Whether all parts of a slot lie alike: part p as part 0, a p-th of a word
  /// further on, modulo 32.
  bool arePartsAlike(int index) const;
};

bool arePartsAlike(const Placement &placement, int slot);

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_PERIOD_H
