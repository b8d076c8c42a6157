//===- ColumnSums.h - products with one number ------------------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_COLUMNSUMS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_COLUMNSUMS_H

#include "DotPlan.h"

#include <map>

namespace lowlp {

/// A product whose operand a holds one number everywhere.
class ColumnSums {
public:
  ColumnSums(DotOp op, llvm::ArrayRef<DotStep> steps);

  /// Whether the product is such a one, of an even number of steps, and so many
  /// that half of the instructions are more than what brings the sums to their
  /// threads. How many columns there are does not matter, so each column is
  /// rounded as beside any others.
  bool isWorthwhile();

  /// The product, where threads hold the operands as these vectors.
  mlir::Value build(mlir::OpBuilder &builder, mlir::Value a, mlir::Value b,
                    mlir::Value c);

private:
  /// Registers of b, two for each step, that an element of c takes.
  using Chain = std::vector<llvm::SmallVector<int64_t, 4>>;

  mlir::Value sum(mlir::OpBuilder &builder, mlir::Value number, mlir::Value b,
                  const Chain &chain) const;
  mlir::Value distribute(mlir::OpBuilder &builder, mlir::Value sum) const;

  DotOp op;
  mlir::Location loc;
  /// By registers of c.
  std::map<llvm::SmallVector<int64_t, 4>, Chain> chainOf;
  /// Those that differ.
  std::vector<Chain> chains;
};

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_COLUMNSUMS_H
