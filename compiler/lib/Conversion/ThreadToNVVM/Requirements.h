//===- Requirements.h - what a program needs of its target ------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTONVVM_REQUIREMENTS_H
#define LOWLP_LIB_CONVERSION_THREADTONVVM_REQUIREMENTS_H

#include "llvm/Support/LogicalResult.h"

namespace mlir::gpu {
class GPUModuleOp;
} // namespace mlir::gpu

namespace lowlp {

struct TargetInfo;

/// Fails if a kernel of `module` takes more shared memory than a block of
/// `target` may have, or holds ops for which the target has no instruction, and
/// reports all of these.
llvm::LogicalResult verifyRequirements(mlir::gpu::GPUModuleOp module,
                                       const TargetInfo &target);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTONVVM_REQUIREMENTS_H
