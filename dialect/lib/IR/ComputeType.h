//===- ComputeType.h - the types that arithmetic is defined on --*- C++ -*-===//
#ifndef LOWLP_LIB_IR_COMPUTETYPE_H
#define LOWLP_LIB_IR_COMPUTETYPE_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// Fails with a diagnostic at `op` unless the tile's elements are of a type
/// that the hardware computes in: f16, bf16 or f32.
mlir::LogicalResult verifyComputeType(mlir::Operation *op, TileType tile);

} // namespace lowlp

#endif // LOWLP_LIB_IR_COMPUTETYPE_H
