//===- SharedMemory.cpp - where shared tiles lie --------------------------===//
//
// lowlp-plan-memory has placed them. Tiles that have no place yet lie one
// behind the other, behind all that have, each at a multiple of 16 bytes, the
// widest access that there is:
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

static constexpr int64_t kAlignBytes = 16;

/// Gives `alloc` the bytes from `offset` on; fails where they are not there.
static LogicalResult place(AllocSharedOp alloc, int64_t offset,
                           SharedMemoryPlan &plan) {
  int64_t &kernelBytes = plan.kernelBytes[alloc->getParentOfType<KernelOp>()];
  int64_t bytes = alloc.getShared().getType().getSizeInBytes();
  if (offset + bytes > AllocSharedOp::kMaxBytes)
    return alloc.emitOpError("does not fit: a block has at most ")
           << AllocSharedOp::kMaxBytes << " bytes of shared memory, of which "
           << offset << " are taken";
  plan.offsetBytes[alloc] = offset;
  kernelBytes = std::max<int64_t>(kernelBytes,
                                  llvm::alignTo(offset + bytes, kAlignBytes));
  return success();
}

FailureOr<SharedMemoryPlan> lowlp::planSharedMemory(Operation *root) {
  SharedMemoryPlan plan;
  auto placeAll = [&](llvm::function_ref<LogicalResult(AllocSharedOp)> place) {
    return root->walk(
        [&](AllocSharedOp alloc) { return WalkResult(place(alloc)); });
  };
  WalkResult placed = placeAll([&](AllocSharedOp alloc) -> LogicalResult {
    IntegerAttr offset = alloc.getOffsetAttr();
    if (!offset && alloc.getScratch())
      return alloc.emitOpError(
          "scratch has no place; run lowlp-plan-memory first");
    return offset ? place(alloc, offset.getInt(), plan) : success();
  });
  WalkResult added = placeAll([&](AllocSharedOp alloc) -> LogicalResult {
    auto kernel = alloc->getParentOfType<KernelOp>();
    return alloc.getOffsetAttr()
               ? success()
               : place(alloc, plan.kernelBytes.lookup(kernel), plan);
  });
  if (placed.wasInterrupted() || added.wasInterrupted())
    return failure();
  return plan;
}
