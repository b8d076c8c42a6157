//===- PlacementSearch.h - Where bits had best be ---------------*- C++ -*-===//
#ifndef LOWLP_DECODE_PLACEMENTSEARCH_H
#define LOWLP_DECODE_PLACEMENTSEARCH_H

#include "lowlp/Decode/SequenceSearch.h"

namespace lowlp {

/// The rates by which placements are searched for, the same for every target:
/// what they find is the packed format.
inline constexpr DecodeRates kReferenceRates = {};

/// The formats and compute types that the packed format has placements for: all
/// with f16 and bf16, and those that int8 or f8e4m3 hold.
std::vector<std::pair<CodeFormat, ComputeType>> getPackedFormats();

/// The placement of least cost by `kReferenceRates`. Deterministic: it counts
/// what it tries, and no time. Codes that are looked up, or that f16 or bf16 do
/// not hold, lie one after the other. Fails where int8 or f8e4m3 do not hold
/// the format's values.
Result<Placement> searchPlacement(CodeFormat format, ComputeType compute);

} // namespace lowlp

#endif // LOWLP_DECODE_PLACEMENTSEARCH_H
