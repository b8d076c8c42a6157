//===- WrittenMemory.cpp - what a kernel may write to ---------------------===//
#include "lowlp/Analysis/WrittenMemory.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

/// The memory that `op` may change, or null. A semaphore that is only acquired
/// has someone who releases it.
static Value getWritten(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<StoreGlobalOp, ScatterGlobalOp, AtomicRMWOp, CopyBulkToGlobalOp>(
          [](auto access) -> Value { return access.getDestination(); })
      .Case<SemaphoreAcquireOp, SemaphoreReleaseOp>(
          [](auto semaphore) -> Value { return semaphore.getView(); })
      .Default([](Operation *) { return Value(); });
}

bool lowlp::isWritten(KernelOp kernel, unsigned index) {
  WalkResult result = kernel.walk([&](Operation *op) {
    Value memory = getWritten(op);
    auto view = memory ? memory.getDefiningOp<ViewGlobalOp>() : ViewGlobalOp();
    if (!view || view.getSource().getDefiningOp<AllocGlobalOp>())
      return WalkResult::advance();
    auto source = dyn_cast<BlockArgument>(view.getSource());
    bool isParameter =
        source && source.getOwner()->getParentOp() == kernel.getOperation();
    bool isOther = isParameter && source.getArgNumber() != index;
    return isOther ? WalkResult::advance() : WalkResult::interrupt();
  });
  return result.wasInterrupted();
}
