//===- CopiedPart.h - what a copy of a part of a view must satisfy -*- C++ -*-//
#ifndef LOWLP_LIB_IR_COPIEDPART_H
#define LOWLP_LIB_IR_COPIEDPART_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// A part of the extents `shape`, which lies along the last dimensions of a
/// view and of a shared tile.
struct CopiedPart {
  mlir::Value view;
  size_t numViewOffsets;
  SharedType shared;
  size_t numSharedOffsets;
  llvm::ArrayRef<int64_t> shape;
  bool isToShared = true;
};

/// Fails with a diagnostic at `op` unless element types, numbers of offsets and
/// extents fit.
mlir::LogicalResult verifyCopiedPart(mlir::Operation *op,
                                     const CopiedPart &part);

} // namespace lowlp

#endif // LOWLP_LIB_IR_COPIEDPART_H
