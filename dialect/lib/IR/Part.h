//===- Part.h - parts of tiles ----------------------------------*- C++ -*-===//
#ifndef LOWLP_LIB_IR_PART_H
#define LOWLP_LIB_IR_PART_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// How the part of a tile with these first indices is held; fails with a
/// diagnostic at `op`, in which the tile is `what`, unless there is one.
mlir::FailureOr<Layout> verifyPart(mlir::Operation *op, llvm::StringRef what,
                                   TileType tile, llvm::ArrayRef<int64_t> part);

} // namespace lowlp

#endif // LOWLP_LIB_IR_PART_H
