//===- TrailingZeros.h - powers of two that divide a number ----*- C++ -*-===//
//
// How many zero bits the value of an index ends in, read off the ops that
// compute it; they survive the wrap-around of integers:
//
//   %a = arith.muli %i, 8             3
//   %b = arith.addi %a, 4             2
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_ANALYSIS_TRAILINGZEROS_H
#define LOWLP_ANALYSIS_TRAILINGZEROS_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// How many zero bits values end in for certain. Remembers what it found: in a
/// chain of sums each of which uses the one before twice, the paths double with
/// every op.
class TrailingZeros {
public:
  unsigned of(mlir::OpFoldResult value);
  /// Of each stride of the view.
  llvm::SmallVector<unsigned> ofStrides(ViewGlobalOp view);

private:
  unsigned ofArgument(mlir::BlockArgument argument);
  unsigned ofResult(mlir::Operation *op);
  unsigned ofProduct(unsigned lhs, unsigned rhs) {
    return std::min(lhs + rhs, kEnough);
  }

  /// More than any access needs; all that is known of 0.
  static constexpr unsigned kEnough = 20;
  llvm::DenseMap<mlir::Value, unsigned> known;
};

/// A power of two that divides `value` for certain; at most 2^20.
int64_t getPowerOf2Divisor(mlir::OpFoldResult value);

} // namespace lowlp

#endif // LOWLP_ANALYSIS_TRAILINGZEROS_H
