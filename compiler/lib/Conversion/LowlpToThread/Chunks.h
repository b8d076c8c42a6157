//===- Chunks.h - a part of a view in chunks of neighbours ------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CHUNKS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CHUNKS_H

#include "LowlpToThread.h"

namespace lowlp {

/// The coordinates of chunk number `chunk` of `chunks`, in row-major order.
llvm::SmallVector<mlir::Value> splitChunk(mlir::OpBuilder &builder,
                                          mlir::Location loc, mlir::Value chunk,
                                          llvm::ArrayRef<int64_t> chunks);

/// `offsets` plus the first element of the chunk of `width` elements at
/// `coordinates`, which count along the last dimensions.
llvm::SmallVector<mlir::Value>
addChunk(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange offsets,
         llvm::ArrayRef<mlir::Value> coordinates, int64_t width);

/// Of a branch that one thread takes.
inline constexpr llvm::StringLiteral kOneThreadAttrName = "lowlp.one_thread";

/// A branch that only the first thread of the block takes, unless the insertion
/// point is in one that one thread takes already; the insertion point moves
/// into it.
void enterFirstThread(mlir::OpBuilder &builder, mlir::Location loc,
                      int64_t first = 0);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CHUNKS_H
