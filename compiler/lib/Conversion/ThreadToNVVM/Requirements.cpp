//===- Requirements.cpp - what a program needs of its target --------------===//
//
// Checked before anything is lowered, so that a program is refused with every
// op that the target lacks, and lowerings may take their instructions for
// granted. A lowering that can do without an instruction has no entry here; it
// asks the target itself.
//
//===----------------------------------------------------------------------===//
#include "Requirements.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

using Features = SmallVector<Feature, 2>;

/// What the lowering of `op` cannot do without.
static Features getRequiredFeatures(Operation *op) {
  return TypeSwitch<Operation *, Features>(op)
      .Case<simt::CopyAsyncOp, simt::CopyAsyncCommitOp, simt::CopyAsyncWaitOp>(
          [](auto) -> Features { return {Feature::CopyAsync}; })
      .Case<simt::MmaOp>(
          [](simt::MmaOp) -> Features { return {Feature::MmaF16}; })
      .Default([](Operation *) { return Features(); });
}

static LogicalResult verifySharedMemory(gpu::GPUFuncOp kernel,
                                        const TargetInfo &target) {
  auto bytes = kernel->getAttrOfType<IntegerAttr>("lowlp.shared_bytes");
  if (!bytes || bytes.getInt() <= target.maxSharedBytesPerBlock)
    return success();
  return kernel.emitOpError("takes ")
         << bytes.getInt() << " bytes of shared memory, but a block of "
         << target.chip << " may have at most "
         << target.maxSharedBytesPerBlock;
}

LogicalResult lowlp::verifyRequirements(gpu::GPUModuleOp module,
                                        const TargetInfo &target) {
  LogicalResult result = success();
  for (auto kernel : module.getOps<gpu::GPUFuncOp>())
    if (failed(verifySharedMemory(kernel, target)))
      result = failure();
  module.walk([&](Operation *op) {
    for (Feature feature : getRequiredFeatures(op))
      if (failed(target.require(op, feature)))
        result = failure();
  });
  return result;
}
