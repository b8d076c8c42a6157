//===- ViewFormulas.h - views as functions of parameters -------*- C++ -*-===//
//
// Extents and strides of a view, read off the ops that compute them:
//
//   %rows = arith.index_cast %m          (m, k) -> (m)
//   %half = arith.muli %rows, 2          (m, k) -> (m * 2)
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_ANALYSIS_VIEWFORMULAS_H
#define LOWLP_ANALYSIS_VIEWFORMULAS_H

#include "lowlp/IR/Lowlp.h"

#include "mlir/IR/AffineExpr.h"

namespace lowlp {

/// Affine functions of the kernel's integer parameters, in elements; null where
/// there is none.
struct ViewFormulas {
  llvm::SmallVector<mlir::AffineExpr> extents, strides;
};

ViewFormulas getViewFormulas(ViewGlobalOp view, KernelOp kernel);

} // namespace lowlp

#endif // LOWLP_ANALYSIS_VIEWFORMULAS_H
