//===- SharedMemory.cpp - where shared tiles lie --------------------------===//
//
// Tiles and mbarriers lie one behind the other, each at a multiple of 16 bytes,
// the widest access that there is, or what tensor copies into it demand:
//
//   alloc_shared <3x16x256xf16>     0
//   alloc_shared <5xsi6>            24576     4 bytes
//   alloc_shared <8xf32>            24592
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"
#include "TensorMaps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kAlignBytes = 16;
/// CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability": the most that a block of any architecture may have.
static constexpr int64_t kMaxBytes = 227 * 1024;

/// The bytes of `shared`, at most one more than a block may have.
static int64_t getSizeInBytes(SharedType shared) {
  int64_t elements = shared.getLayout().numElements();
  if (elements > 8 * kMaxBytes)
    return kMaxBytes + 1;
  return std::min<int64_t>(
      llvm::divideCeil(elements * *getElementBits(shared.getElementType()), 8),
      kMaxBytes + 1);
}

/// The bytes that `op` allocates, or 0 if it is no allocation.
static int64_t getAllocatedBytes(Operation *op) {
  if (auto alloc = dyn_cast<AllocSharedOp>(op))
    return getSizeInBytes(alloc.getShared().getType());
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

FailureOr<SharedMemoryPlan> lowlp::planSharedMemory(Operation *root) {
  SharedMemoryPlan plan;
  WalkResult result = root->walk([&](Operation *op) {
    int64_t bytes = getAllocatedBytes(op);
    if (!bytes)
      return WalkResult::advance();
    int64_t &kernelBytes = plan.kernelBytes[op->getParentOfType<KernelOp>()];
    int64_t offset = llvm::alignTo(kernelBytes, getAlignBytes(op));
    plan.offsetBytes[op] = offset;
    if (offset + bytes > kMaxBytes) {
      op->emitOpError("does not fit: a block has at most ")
          << kMaxBytes << " bytes of shared memory, of which " << offset
          << " are taken";
      return WalkResult::interrupt();
    }
    kernelBytes = llvm::alignTo(offset + bytes, kAlignBytes);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return plan;
}
