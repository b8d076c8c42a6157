//===- CodesPart.h - the codes of a larger tile that are looked up -*- C++ -*-//
#ifndef LOWLP_LIB_IR_CODESPART_H
#define LOWLP_LIB_IR_CODESPART_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// How threads hold the part of a tile whose leading indices are `part`; fails
/// with a diagnostic at `op` where there is no such part, or not every thread
/// holds it.
mlir::FailureOr<Layout> verifyCodesPart(mlir::Operation *op, TileType codes,
                                        llvm::ArrayRef<int64_t> part);

/// The same. Requires: there is such a part.
Layout getCodesPartLayout(TileType codes, llvm::ArrayRef<int64_t> part);

/// The registers of the part, in the order of its local index.
llvm::SmallVector<int64_t> getCodesPartLocals(TileType codes,
                                              llvm::ArrayRef<int64_t> part);

} // namespace lowlp

#endif // LOWLP_LIB_IR_CODESPART_H
