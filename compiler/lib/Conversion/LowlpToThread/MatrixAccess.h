//===- MatrixAccess.h - tiles that ldmatrix and stmatrix move ---*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_MATRIXACCESS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_MATRIXACCESS_H

#include "lowlp/IR/Lowlp.h"

#include "mlir/Transforms/DialectConversion.h"

namespace lowlp {

/// How matrix instructions move a tile from or to shared memory.
struct MatrixAccess {
  /// Of the same tile: the layout in which the lane that gives the address of a
  /// row would hold that row. Local index `n * rowElements` is the row of
  /// instruction `n`.
  Layout rows;
  int64_t rowElements;
  /// Matrices moved by one instruction: 1, 2 or 4.
  int64_t matricesPerOp;
  bool trans;
  /// The whole tile lies in the shared tile for certain, or so the op promises.
  bool isInside;

  int64_t numOps() const { return rows.numLocals() / rowElements; }
};

/// By `lowlp.load_shared` and `lowlp.store_shared`; those that are not there
/// move their tiles otherwise.
using MatrixAccesses = llvm::DenseMap<mlir::Operation *, MatrixAccess>;

/// Finds the accesses below `root` that matrix instructions can do; those of
/// stores only where `hasStMatrix`.
MatrixAccesses planMatrixAccesses(mlir::Operation *root, bool hasStMatrix);

/// Loads the tile's registers by `access`, which must find the whole tile
/// inside of the shared tile at `offsets`.
mlir::Value emitMatrixLoad(mlir::ConversionPatternRewriter &rewriter,
                           mlir::Location loc, mlir::Value base, TileType tile,
                           const SharedLayout &addresses,
                           mlir::ValueRange offsets,
                           const MatrixAccess &access);

/// The mirror of `emitMatrixLoad`.
void emitMatrixStore(mlir::ConversionPatternRewriter &rewriter,
                     mlir::Location loc, mlir::Value registers,
                     mlir::Value base, TileType tile,
                     const SharedLayout &addresses, mlir::ValueRange offsets,
                     const MatrixAccess &access);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_MATRIXACCESS_H
