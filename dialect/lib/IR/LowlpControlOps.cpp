//===- LowlpControlOps.cpp - promises, output, early end ------------------===//
#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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
  return isa<arith::ArithDialect, scf::SCFDialect>(op->getDialect()) ||
         isa<MbarrierWaitOp, MbarrierExpectBytesOp, FenceAsyncOp, CopyBulkOp,
             CopyTensorOp, AssumeOp, AssumeDivisibleOp>(op);
}

LogicalResult FirstThreadOp::verifyRegions() {
  WalkResult result = getBody().walk([&](Operation *op) {
    bool isScalar =
        llvm::none_of(op->getResultTypes(), llvm::IsaPred<TileType>);
    if (isForOneThread(op) && isScalar)
      return WalkResult::advance();
    op->emitOpError("is the work of all threads and cannot stand in "
                    "lowlp.first_thread");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ExitOp::verify() {
  if ((*this)->getParentOfType<KernelOp>())
    return success();
  return emitOpError("must lie in a lowlp.kernel");
}
