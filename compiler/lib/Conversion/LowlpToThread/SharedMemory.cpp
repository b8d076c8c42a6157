//===- SharedMemory.cpp - where shared tiles lie --------------------------===//
//
// Tiles lie one behind the other, each at a multiple of 16 bytes, the widest
// access that there is:
//
//   alloc_shared <3x16x256xf16>     0
//   alloc_shared <5xsi6>            24576     4 bytes
//   alloc_shared <8xf32>            24592
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"

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

FailureOr<SharedMemoryPlan> lowlp::planSharedMemory(Operation *root) {
  SharedMemoryPlan plan;
  WalkResult result = root->walk([&](AllocSharedOp alloc) {
    auto kernel = alloc->getParentOfType<KernelOp>();
    int64_t &kernelBytes = plan.kernelBytes[kernel];
    plan.offsetBytes[alloc] = kernelBytes;
    int64_t bytes = getSizeInBytes(alloc.getShared().getType());
    if (kernelBytes + bytes > kMaxBytes) {
      alloc.emitOpError("does not fit: a block has at most ")
          << kMaxBytes << " bytes of shared memory, of which " << kernelBytes
          << " are taken";
      return WalkResult::interrupt();
    }
    kernelBytes += llvm::alignTo(bytes, kAlignBytes);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return plan;
}
