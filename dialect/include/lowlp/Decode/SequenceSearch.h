//===- SequenceSearch.h - The shortest way from words to fragments -*- C++
//-*-===//
#ifndef LOWLP_DECODE_SEQUENCESEARCH_H
#define LOWLP_DECODE_SEQUENCESEARCH_H

#include "lowlp/Decode/DecodePlan.h"

namespace lowlp {

/// What one instruction of a warp costs on a target, in any unit.
struct DecodeRates {
  /// LOP3, PRMT, rotations: half rate on the targets so far.
  int alu = 2;
  /// Products and sums of halves and of f32.
  int fma = 1;
  /// Roundings of f32 to halves.
  int convert = 8;
};

/// The cheapest plan that decodes `slots` of a placement, all of them if empty,
/// proved. Fails where the compute type does not hold the format's values.
Result<DecodePlan> planDecode(const Placement &placement, DecodeEnding ending,
                              const DecodeRates &rates,
                              std::vector<int> slots = {});

/// The cheapest plan with `Accumulators` of integers in signed bytes, all of
/// which take the upper bits of their bytes: the numbers of signed codes times
/// one power of two, without an offset. Fails for other placements than those
/// of integers for int8.
Result<DecodePlan> planSigned(const Placement &placement,
                              const DecodeRates &rates);

/// The same as `planDecode` for the slots of the first tile of 16 rows, with
/// its rows for those of all tiles: the plan of warps that take a tile each,
/// after moving their words as `findTileShift(placement)` says. Requires that
/// it says so.
Result<DecodePlan> planTile(const Placement &placement, DecodeEnding ending,
                            const DecodeRates &rates);

/// The plan with products and sums after it, so that every register holds
/// `(value + offset) * 2^exponent` with this offset and the exponents of the
/// plan; proved. Requires `plan` to be proved for the placement. Fails unless
/// scales go on accumulators and the compute type, f16 or bf16, holds all
/// numbers.
Result<DecodePlan> setOffset(const DecodePlan &plan, const Placement &placement,
                             double offset);

/// The plan for codes u of one bit whose registers hold the numbers of 1 - u,
/// `-(value - 1)` in place of `value`, at the same cost; proved. Fails for
/// codes of more bits, with scales on weights, and where not all registers are
/// masks.
Result<DecodePlan> complement(const DecodePlan &plan,
                              const Placement &placement);

/// The plan for integers u of 2 to 5 bits as f8e4m3 whose registers hold
/// `u - 2^(bits - 1)`, the numbers of signed ones, times the power of two of
/// their row, for three more instructions of the ALU and two products each;
/// proved. Fails for other placements, and
/// where a byte holds other bits than its code.
Result<DecodePlan> useSigns(const DecodePlan &plan, const Placement &placement);

/// What a plan with scales on weights becomes if all zeros are integers to
/// which the compute type can add 2^10, or with bf16 2^7, exactly: fewer
/// products where codes are integers, the same plan elsewhere; proved. Fails
/// for a plan with scales on accumulators.
Result<DecodePlan> useWholeZeros(const DecodePlan &plan,
                                 const Placement &placement);

} // namespace lowlp

#endif // LOWLP_DECODE_SEQUENCESEARCH_H
