//===- SharedMemory.cpp - where shared tiles lie --------------------------===//
//
// lowlp-plan-memory has placed most tiles. What has no place yet, mbarriers
// among them, lies behind all that has, one behind the other, each at a
// multiple of 16 bytes, the widest access that there is, or what tensor copies
// into it demand:
//
//   alloc_shared at 0 <3x16x256xf16>     0
//   alloc_shared <5xsi6>                 24576     4 bytes
//   alloc_shared <8xf32>                 24592
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"
#include "TensorMaps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kAlignBytes = 16;

/// The bytes that `op` allocates, or 0 if it is no allocation.
static int64_t getAllocatedBytes(Operation *op) {
  if (auto alloc = dyn_cast<AllocSharedOp>(op))
    return alloc.getType().getSizeInBytes();
  if (auto alloc = dyn_cast<AllocMbarriersOp>(op))
    return kMbarrierBytes * alloc.getType().getCount();
  return 0;
}

static int64_t getAlignBytes(Operation *alloc) {
  int64_t alignBytes = kAlignBytes;
  for (Operation *user : alloc->getUsers())
    if (auto copy = dyn_cast<CopyTensorOp>(user))
      alignBytes = std::max(alignBytes, getTensorAlignBytes(copy));
  return alignBytes;
}

/// The place that the program gives `op`; none where it gives none.
static std::optional<int64_t> getOffset(Operation *op) {
  auto alloc = dyn_cast<AllocSharedOp>(op);
  if (alloc && alloc.getOffsetAttr())
    return alloc.getOffsetAttr().getInt();
  return std::nullopt;
}

/// Gives `op` the bytes from `offset` on; fails where they are not there.
static LogicalResult place(Operation *op, int64_t offset,
                           SharedMemoryPlan &plan) {
  int64_t &kernelBytes = plan.kernelBytes[op->getParentOfType<KernelOp>()];
  int64_t end = offset + getAllocatedBytes(op);
  if (end > AllocSharedOp::kMaxBytes)
    return op->emitOpError("does not fit: a block has at most ")
           << AllocSharedOp::kMaxBytes << " bytes of shared memory, of which "
           << offset << " are taken";
  plan.offsetBytes[op] = offset;
  kernelBytes = std::max<int64_t>(kernelBytes, llvm::alignTo(end, kAlignBytes));
  return success();
}

FailureOr<SharedMemoryPlan> lowlp::planSharedMemory(Operation *root) {
  SharedMemoryPlan plan;
  SmallVector<Operation *> others;
  WalkResult placed = root->walk([&](Operation *op) {
    if (!getAllocatedBytes(op))
      return WalkResult::advance();
    if (std::optional<int64_t> offset = getOffset(op))
      return WalkResult(place(op, *offset, plan));
    if (auto alloc = dyn_cast<AllocSharedOp>(op); alloc && alloc.getScratch())
      return WalkResult(alloc.emitOpError(
          "scratch has no place; run lowlp-plan-memory first"));
    others.push_back(op);
    return WalkResult::advance();
  });
  if (placed.wasInterrupted())
    return failure();
  for (Operation *op : others) {
    int64_t end = plan.kernelBytes.lookup(op->getParentOfType<KernelOp>());
    if (failed(place(op, llvm::alignTo(end, getAlignBytes(op)), plan)))
      return failure();
  }
  return plan;
}
