//===- AccessCost.h - what loads, stores and conversions cost --*- C++ -*-===//
//
// In the units of `WarpConversion::cost`: instructions of a warp, weighted by
// how seldom an SM can begin one. Estimates, to choose between layouts with.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_ACCESSCOST_H
#define LOWLP_LIB_TRANSFORMS_ACCESSCOST_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// What it costs a warp to load or store `tile` along the last dimensions of
/// `view`, by accesses of up to 16 bytes: each takes the sectors of 32 bytes
/// that its lanes touch (CUDA C++ Best Practices Guide, "Coalesced Access to
/// Global Memory"), of which an SM moves two while it begins an access.
int64_t getGlobalAccessCost(ViewGlobalOp view, TileType tile);

/// What the cheapest way from one layout to another costs.
int64_t getConversionCost(TileType source, const Layout &result);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_ACCESSCOST_H
