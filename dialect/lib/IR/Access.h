//===- Access.h - what accesses of memory must satisfy ----------*- C++ -*-===//
#ifndef LOWLP_LIB_IR_ACCESS_H
#define LOWLP_LIB_IR_ACCESS_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// Fails with a diagnostic at `op` unless it may load or store `tile` in the
/// view of global memory `view`, at `numOffsets` offsets.
mlir::LogicalResult verifyGlobalAccess(mlir::Operation *op, TileType tile,
                                       mlir::Value view, size_t numOffsets);

} // namespace lowlp

#endif // LOWLP_LIB_IR_ACCESS_H
