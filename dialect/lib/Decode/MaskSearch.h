//===- MaskSearch.h - Codes put together by masks ---------------*- C++ -*-===//
//
// Every bit of a code goes to its home in the register of its slot: a slot is
// the OR of masked words, each rotated as its bits need it. Rotations are
// shared. Where several slots take their bits from the same words in the same
// way but for one rotation, these bits are gathered once, into a merged word,
// and the slots are masked out of it:
//
//   merged = select(mask, rotate(w0, r), w1)
//   slot 0 = merged & mask0,   slot 1 = rotate(merged, 8) & mask0
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_DECODE_MASKSEARCH_H
#define LOWLP_LIB_DECODE_MASKSEARCH_H

#include "Endings.h"
#include "Period.h"

#include <optional>

namespace lowlp {

/// Bits of a rotated word.
struct MaskedWord {
  int word;
  int rotation;
  uint32_t mask;
};

/// A register to be made: a slot, or for numbers of 32 bits a half of one.
struct MaskTarget {
  std::vector<MaskedWord> sources;
  /// Bits that are turned over.
  uint32_t flip = 0;
};

class MaskPlan {
public:
  /// The cheapest plan found for the first block.
  static MaskPlan search(const Period &period, const Homes &homes,
                         DecodeEnding ending, const DecodeRates &rates);

  /// Adds the steps for a slot of a block; the result is its register.
  int emit(Sequence &sequence, int block, int index, int scale) const;
  const std::vector<RowForm> &getRows() const { return rows; }

  /// Bits of several words, gathered.
  struct MergedWord {
    std::vector<MaskedWord> sources;
    /// Targets and the rotation that each needs.
    std::map<int, int> rotations;
  };

  /// Of the first block.
  int getCost() const;

private:
  MaskPlan(const Period &period, const Homes &homes, DecodeEnding ending,
           const DecodeRates &rates)
      : period(period), homes(homes), ending(ending), rates(rates) {}

  MaskTarget getTarget(int index, int shift, int half) const;
  int countShifts() const;
  void chooseShifts();
  bool improveSlot(int index);
  bool improveRow(int row);
  void makeTargets();
  void chooseMergedWords();
  int countMasks() const;
  std::optional<MergedWord> merge(int a, int b, int lag) const;
  bool improveMerged(int a, int b);
  int emitTarget(Sequence &sequence, int block, int target) const;

  const Period &period;
  Homes homes;
  DecodeEnding ending;
  DecodeRates rates;
  std::vector<RowForm> rows;
  /// By slot and shift, where there is a choice.
  std::vector<std::vector<MaskTarget>> choices;
  /// By slot.
  std::vector<int> shifts;
  /// One for each slot, or two.
  std::vector<MaskTarget> targets;
  std::vector<MergedWord> merged;
  /// By target; -1 if it takes its bits itself.
  std::vector<int> mergedOfTarget;
};

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_MASKSEARCH_H
