//===- PlacementSearch.h - Where bits had best be ---------------*- C++ -*-===//
#ifndef LOWLP_DECODE_PLACEMENTSEARCH_H
#define LOWLP_DECODE_PLACEMENTSEARCH_H

#include "lowlp/Decode/SequenceSearch.h"

namespace lowlp {

/// The rates by which placements are searched for, the same for every target:
/// what they find is the packed format.
inline constexpr DecodeRates kReferenceRates = {};

/// The placement of least cost by `kReferenceRates`. Deterministic: it counts
/// what it tries, and no time.
Result<Placement> searchPlacement(CodeFormat format, ComputeType compute);

} // namespace lowlp

#endif // LOWLP_DECODE_PLACEMENTSEARCH_H
