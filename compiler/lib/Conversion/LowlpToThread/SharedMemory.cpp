//===- SharedMemory.cpp - where shared tiles lie --------------------------===//
//
// lowlp-plan-memory has placed tiles. Tiles that have no place yet, and
// mbarriers, lie one after the other, after all that have, each at a multiple
// of 16 bytes, the widest access that there is, or of what tensor copies into
// it demand:
//
//   alloc_shared at 0 <3x16x256xf16>     0
//   alloc_shared <5xsi6>                 24576     4 bytes
//   alloc_shared <8xf32>                 24592
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

/// Gives `alloc` the `bytes` from `offset` on; fails where they are not there.
static LogicalResult place(Operation *alloc, int64_t bytes, int64_t offset,
                           SharedMemoryPlan &plan) {
  int64_t &kernelBytes = plan.kernelBytes[alloc->getParentOfType<KernelOp>()];
  if (offset + bytes > AllocSharedOp::kMaxBytes)
    return alloc->emitOpError("does not fit: a block has at most ")
           << AllocSharedOp::kMaxBytes << " bytes of shared memory, of which "
           << offset << " are taken";
  plan.offsetBytes[alloc] = offset;
  kernelBytes = std::max<int64_t>(
      kernelBytes, llvm::alignTo(offset + bytes, AllocSharedOp::kAlignBytes));
  return success();
}

/// Gives `alloc` bytes after all that are taken.
static LogicalResult placeBehind(Operation *alloc, int64_t bytes,
                                 int64_t alignBytes, SharedMemoryPlan &plan) {
  int64_t taken = plan.kernelBytes.lookup(alloc->getParentOfType<KernelOp>());
  return place(alloc, bytes, llvm::alignTo(taken, alignBytes), plan);
}

FailureOr<SharedMemoryPlan> lowlp::planSharedMemory(Operation *root) {
  SharedMemoryPlan plan;
  WalkResult placed = root->walk([&](AllocSharedOp alloc) -> WalkResult {
    IntegerAttr offset = alloc.getOffsetAttr();
    if (!offset && alloc.getScratch())
      return alloc.emitOpError(
          "scratch has no place; run lowlp-plan-memory first");
    if (!offset)
      return WalkResult::advance();
    return place(alloc, alloc.getType().getSizeInBytes(), offset.getInt(),
                 plan);
  });
  WalkResult added = root->walk([&](Operation *op) -> WalkResult {
    if (auto alloc = dyn_cast<AllocSharedOp>(op); alloc && !alloc.getOffset())
      return placeBehind(op, alloc.getType().getSizeInBytes(),
                         alloc.getAlignBytes(), plan);
    if (auto alloc = dyn_cast<AllocMbarriersOp>(op))
      return placeBehind(op, kMbarrierBytes * alloc.getType().getCount(),
                         AllocSharedOp::kAlignBytes, plan);
    return WalkResult::advance();
  });
  if (placed.wasInterrupted() || added.wasInterrupted())
    return failure();
  return plan;
}
