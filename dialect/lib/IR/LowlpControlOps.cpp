//===- LowlpControlOps.cpp - promises, output, early end ------------------===//
#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowlp;

LogicalResult PrintOp::verify() {
  size_t numPlaces = getFormat().count("{}");
  if (numPlaces == getValues().size())
    return success();
  return emitOpError("the text has ")
         << numPlaces << " places {}, but there are " << getValues().size()
         << " values";
}

/// Whether one thread can do it alone.
static bool isForOneThread(Operation *op) {
  return isMemoryEffectFree(op) || isa<scf::SCFDialect>(op->getDialect()) ||
         isa<MbarrierWaitOp, MbarrierExpectBytesOp, WaitForDependenciesOp,
             FenceAsyncOp, CopyBulkOp, CopyTensorOp, AssumeOp, LoadScalarOp>(
             op);
}

static LogicalResult verifyForOneThread(Operation *parent, Region &region) {
  WalkResult result = region.walk([&](Operation *op) {
    bool isScalar =
        llvm::none_of(op->getResultTypes(), llvm::IsaPred<TileType>);
    if (isForOneThread(op) && isScalar)
      return WalkResult::advance();
    op->emitOpError("is the work of all threads and cannot stand in ")
        << parent->getName();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult FirstThreadOp::verifyRegions() {
  return verifyForOneThread(*this, getBody());
}

LogicalResult ProducerWarpOp::verifyRegions() {
  return verifyForOneThread(*this, getBody());
}

LogicalResult ProducerWarpOp::verify() {
  if (!isa<KernelOp>((*this)->getParentOp()))
    return emitOpError("must stand in the body of the kernel itself, but is "
                       "in a ")
           << (*this)->getParentOp()->getName();
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<ProducerWarpOp>(op))
      return emitOpError("stands in the kernel twice");
    if (op->getNumRegions() != 0 ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<TileType>) ||
        isa<StoreGlobalOp, StoreSharedOp, SynchronizeOp,
            SynchronizeWarpgroupsOp>(op))
      return emitOpError("must stand before ")
             << op->getName() << ", which its warp would do too";
  }
  return success();
}

LogicalResult ExitOp::verify() {
  if ((*this)->getParentOfType<KernelOp>())
    return success();
  return emitOpError("must lie in a lowlp.kernel");
}
