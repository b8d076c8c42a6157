//===- LinearForm.h - how far apart two numbers are -------------*- C++ -*-===//
#ifndef LOWLP_ANALYSIS_LINEARFORM_H
#define LOWLP_ANALYSIS_LINEARFORM_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace lowlp {

/// An index as a sum: a constant, and other indices times constants, modulo
/// 2^64 as indices are.
class LinearForm {
public:
  /// Follows a few sums, products and exact divisions by constants.
  static LinearForm of(mlir::Value index, int depth = kDepth);

  /// `this - other`, if the two differ by a constant.
  std::optional<int64_t> minus(const LinearForm &other) const;

private:
  /// Each sum doubles what there is to follow.
  static constexpr int kDepth = 8;

  /// Whether the number is known not to be negative, and far from overflow.
  bool isSmall() const;
  void add(const LinearForm &other, uint64_t factor);
  /// Becomes `index / divisor`, the value `quotient`.
  void divide(mlir::Value quotient, const LinearForm &index, uint64_t divisor);

  llvm::SmallMapVector<mlir::Value, uint64_t, 4> terms;
  uint64_t constant = 0;
};

} // namespace lowlp

#endif // LOWLP_ANALYSIS_LINEARFORM_H
