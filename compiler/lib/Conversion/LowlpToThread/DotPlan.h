//===- DotPlan.h - the matrix instructions of a product ---------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_DOTPLAN_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_DOTPLAN_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// One matrix instruction of a product: which of a thread's registers it takes,
/// 4 of a, 2 of b and 2 of c, in the order of the instruction's fragments. A
/// register holds 32 bits of a or b, or 2 accumulators of c.
struct DotStep {
  llvm::SmallVector<int64_t, 4> a, b, c;
};
using DotPlans = llvm::DenseMap<mlir::Operation *, llvm::SmallVector<DotStep>>;

/// Finds the steps of every product below `root`; fails with a diagnostic for
/// each one whose layouts do not fit the instruction.
mlir::FailureOr<DotPlans> planDots(mlir::Operation *root);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_DOTPLAN_H
