//===- Requirements.cpp - what a program needs of its target --------------===//
//
// Checked before anything is lowered, so that a program is refused with every
// op that the target lacks, and lowerings may take their instructions for
// granted. A lowering that can do without an instruction has no entry here; it
// asks the target itself.
//
//===----------------------------------------------------------------------===//
#include "Requirements.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/Simt.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

using Features = SmallVector<Feature, 2>;

static Feature getRequiredFeature(simt::MmaOp mma) {
  Type element = mma.getElementTypeOfA();
  if (isa<Float8E4M3FNType, Float8E5M2Type>(element))
    return Feature::MmaF8;
  if (element.isUnsignedInteger(1))
    return mma.getK() == 128 ? Feature::MmaB1AndHalf : Feature::MmaB1And;
  return isa<IntegerType>(element) ? Feature::MmaS8 : Feature::MmaF16;
}

/// What the lowering of `op` cannot do without.
static Features getRequiredFeatures(Operation *op) {
  return TypeSwitch<Operation *, Features>(op)
      .Case<simt::ClusterBarrierOp, simt::MapSharedOp>(
          [](auto) -> Features { return {Feature::Cluster}; })
      .Case<simt::StoreAsyncOp>(
          [](auto) -> Features { return {Feature::StoreAsync}; })
      .Case<simt::CopyAsyncOp, simt::CopyAsyncCommitOp, simt::CopyAsyncWaitOp>(
          [](auto) -> Features { return {Feature::CopyAsync}; })
      .Case<simt::MbarrierInitOp, simt::FenceMbarrierInitOp>(
          [](auto) -> Features { return {Feature::MbarrierExpectTx}; })
      .Case<simt::MbarrierArriveOp>([](simt::MbarrierArriveOp arrive) {
        return arrive.getBytes() ? Features{Feature::MbarrierExpectTx}
                                 : Features{Feature::Mbarrier};
      })
      .Case<simt::MbarrierWaitOp>(
          [](auto) -> Features { return {Feature::MbarrierTryWait}; })
      .Case<simt::FenceAsyncOp>(
          [](auto) -> Features { return {Feature::FenceProxyAsync}; })
      .Case<simt::CopyBulkOp>([](auto) -> Features {
        return {Feature::BulkCopyToCluster, Feature::MbarrierExpectTx};
      })
      .Case<simt::CopyBulkToGlobalOp, simt::CopyBulkCommitOp,
            simt::CopyBulkWaitOp>(
          [](auto) -> Features { return {Feature::BulkCopyToGlobal}; })
      .Case<simt::CopyTensorOp>(
          [](auto) -> Features { return {Feature::TensorCopy}; })
      .Case<simt::AtomicRMWOp>([](simt::AtomicRMWOp atomic) -> Features {
        Type element = getElementTypeOrSelf(atomic.getValue());
        if (element.isBF16())
          return {Feature::AtomicBF16x2};
        return element.isF16() ? Features{Feature::AtomicF16x2} : Features();
      })
      .Case<simt::MmaOp>(
          [](simt::MmaOp mma) -> Features { return {getRequiredFeature(mma)}; })
      // Of the same architectures.
      .Case<simt::WgmmaOp>([](simt::WgmmaOp wgmma) -> Features {
        return {wgmma.getElementTypeOfA().isUnsignedInteger(1)
                    ? Feature::WgmmaB1
                    : Feature::Wgmma};
      })
      .Case<simt::WgmmaFenceOp, simt::WgmmaCommitOp, simt::WgmmaWaitOp,
            simt::SetRegistersOp>(
          [](auto) -> Features { return {Feature::Wgmma}; })
      .Case<simt::LdMatrixOp>(
          [](auto) -> Features { return {Feature::LoadMatrix}; })
      .Case<simt::StMatrixOp>(
          [](auto) -> Features { return {Feature::StoreMatrix}; })
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

static bool hasClusters(gpu::GPUFuncOp kernel) {
  auto schedule =
      kernel->getAttrOfType<ScheduleAttr>(LowlpDialect::kScheduleAttrName);
  return schedule && schedule.getCluster() > 1;
}

LogicalResult lowlp::verifyRequirements(gpu::GPUModuleOp module,
                                        const TargetInfo &target) {
  LogicalResult result = success();
  for (auto kernel : module.getOps<gpu::GPUFuncOp>())
    if (failed(verifySharedMemory(kernel, target)) ||
        (hasClusters(kernel) &&
         failed(target.require(kernel, Feature::Cluster))))
      result = failure();
  module.walk([&](Operation *op) {
    for (Feature feature : getRequiredFeatures(op))
      if (failed(target.require(op, feature)))
        result = failure();
  });
  return result;
}
