//===- RowSteps.h - what is done to codes row by row ------------*- C++ -*-===//
//
// Weights that a program makes of codes by numbers that each row has one of:
//
//   (cast(codes) - zeros) * scales * 2.0        subtract, multiply, multiply
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_ROWSTEPS_H
#define LOWLP_LIB_TRANSFORMS_ROWSTEPS_H

#include "CodedProducts.h"

namespace lowlp {

/// One step, with a number for each row, or one for all.
struct RowStep {
  enum Kind { Multiply, Add, Subtract };
  Kind kind;
  /// A tile of one column; null where all rows have `scalar`.
  mlir::Value column, scalar;
};

/// How an operand is made of codes.
struct ScaledWeights {
  /// Null where the operand is made of no codes of the packed format.
  UnpackOp codes;
  /// The codes cast or looked up, which the steps begin with.
  mlir::Value base;
  /// In the order of the program.
  llvm::SmallVector<RowStep> steps;
  /// Why the operand is not `base` with `steps`; empty if it is.
  std::string obstacle;
};

ScaledWeights getScaledWeights(mlir::Value operand);

/// Whether `tile` is `cast(codes)`.
bool isCastOfCodes(mlir::Value tile);

/// Whether the same is done to both, by the same numbers.
bool haveSameSteps(const ScaledWeights &first, const ScaledWeights &second);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_ROWSTEPS_H
