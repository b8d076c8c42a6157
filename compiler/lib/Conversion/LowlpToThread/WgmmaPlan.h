//===- WgmmaPlan.h - the registers of warpgroups' products ------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_WGMMAPLAN_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_WGMMAPLAN_H

#include "lowlp/IR/Lowlp.h"

#include "mlir/Transforms/DialectConversion.h"

namespace lowlp {

/// Which of a thread's registers the instructions of a product take that make
/// the accumulators of 16 rows of each warp, in the order of their fragments.
struct WgmmaPart {
  /// Of the accumulators, two of f32 or i32 each; the same for all steps.
  llvm::SmallVector<int64_t> accumulators;
  /// Of a, 4 of 32 bits for each step along K.
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>> steps;
};
using WgmmaPlan = llvm::SmallVector<WgmmaPart, 1>;
using WgmmaPlans = llvm::DenseMap<mlir::Operation *, WgmmaPlan>;

/// `WgmmaPart::accumulators` of all parts for accumulators of that layout;
/// nothing where a warp does not hold all columns of its rows as the
/// instruction does.
std::optional<llvm::SmallVector<llvm::SmallVector<int64_t>>>
orderAccumulators(const Layout &layout);

/// Finds the plan of every `lowlp.wgmma` below `root`; fails with a diagnostic
/// for each one whose layouts do not fit the instruction.
mlir::FailureOr<WgmmaPlans> planWgmmas(mlir::Operation *root);

void populateWgmmaPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns,
                           const WgmmaPlans &plans);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_WGMMAPLAN_H
