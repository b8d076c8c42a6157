//===- TileBounds.h - whether a tile lies inside for certain ----*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEBOUNDS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEBOUNDS_H

#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/ValueRange.h"

namespace lowlp {

/// Says of tiles that lie along the last dimensions of others, at offsets that
/// a program computes, whether they lie inside.
class TileBounds {
public:
  /// Looks at the program below `root`, which must stay as it is.
  explicit TileBounds(mlir::Operation *root);

  /// Whether there are offsets at which `tile` lies in `shape`.
  static bool mayBeInside(llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<int64_t> tile);
  /// Whether `tile` lies in `shape` at these offsets in every run.
  bool isInside(mlir::ValueRange offsets, llvm::ArrayRef<int64_t> shape,
                llvm::ArrayRef<int64_t> tile) const;

  /// The largest offset along dimension `dim` of `shape`; negative where there
  /// is none.
  static int64_t getLargestOffset(llvm::ArrayRef<int64_t> shape,
                                  llvm::ArrayRef<int64_t> tile, size_t dim);

private:
  mlir::DataFlowSolver solver;
};

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEBOUNDS_H
