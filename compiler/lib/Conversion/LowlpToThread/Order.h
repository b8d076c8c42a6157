//===- Order.h - what blocks of a launch share ------------------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_ORDER_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_ORDER_H

#include "LowlpToThread.h"

namespace lowlp {

/// Where `lowlp.alloc_global` ops lie in the workspace of their kernel.
struct WorkspacePlan {
  /// The ops of each kernel that has some, in the order in which they lie.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<AllocGlobalOp>> allocs;
};

/// Gives every kernel below `root` that allocates global memory one more
/// parameter, the last: the pointer to its workspace.
WorkspacePlan planWorkspace(mlir::Operation *root);

/// What a launch must know of the workspace of `kernel`: an array with one
/// dictionary for each of its allocations.
mlir::ArrayAttr describeWorkspace(const WorkspacePlan &plan, KernelOp kernel);

/// Finds out which atomics of f16 and bf16 below `root` may change pairs.
void planAtomicWidths(mlir::Operation *root, AccessWidths &widths);

void populateAtomicPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const AccessWidths &widths);
void populateClusterPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateSemaphorePatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
void populateWorkspacePatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns,
                               const WorkspacePlan &plan);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_ORDER_H
