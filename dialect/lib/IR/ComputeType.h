//===- ComputeType.h - the types that arithmetic is defined on --*- C++ -*-===//
#ifndef LOWLP_LIB_IR_COMPUTETYPE_H
#define LOWLP_LIB_IR_COMPUTETYPE_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// Fails with a diagnostic at `op` unless the tile's elements are of a type
/// that functions are computed in: f16, bf16 or f32.
mlir::LogicalResult verifyComputeType(mlir::Operation *op, TileType tile);

/// As `verifyComputeType`, for arithmetic that integers of 16 and 32 bits have
/// too.
mlir::LogicalResult verifyArithmeticType(mlir::Operation *op, TileType tile);

/// As `verifyArithmeticType`, for arithmetic on the sign of a number.
mlir::LogicalResult verifySignedArithmeticType(mlir::Operation *op,
                                               TileType tile);

} // namespace lowlp

#endif // LOWLP_LIB_IR_COMPUTETYPE_H
