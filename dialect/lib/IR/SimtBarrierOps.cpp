//===- SimtBarrierOps.cpp - mbarriers and bulk copies of one thread -------===//
#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Simt.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace lowlp::simt;

// PTX ISA, "Contents of the mbarrier object".
static constexpr int64_t kMaxCount = (1 << 20) - 1;
static constexpr int64_t kBulkBytes = 16;

static LogicalResult verifySpace(Operation *op, StringRef what, PtrType type,
                                 MemorySpace space) {
  if (type.getSpace() == space)
    return success();
  return op->emitOpError("the ")
         << what << " must be in " << stringifyMemorySpace(space)
         << " memory, but is " << type;
}

static LogicalResult verifyBarrier(Operation *op, Value base) {
  return verifySpace(op, "mbarrier", cast<PtrType>(base.getType()),
                     MemorySpace::Shared);
}

static LogicalResult verifyBytes(Operation *op, int64_t bytes) {
  if (bytes < kBulkBytes || bytes > kMaxCount || bytes % kBulkBytes != 0)
    return op->emitOpError("bytes must be a multiple of ")
           << kBulkBytes << " up to " << kMaxCount << ", but are " << bytes;
  return success();
}

LogicalResult MbarrierInitOp::verify() {
  if (int64_t arrivals = getArrivals(); arrivals < 1 || arrivals > kMaxCount)
    return emitOpError("arrivals must be 1 to ")
           << kMaxCount << ", but are " << arrivals;
  return verifyBarrier(*this, getBase());
}

LogicalResult MbarrierArriveOp::verify() {
  if (std::optional<int64_t> bytes = getBytes();
      bytes && (*bytes < 1 || *bytes > kMaxCount))
    return emitOpError("expected bytes must be 1 to ")
           << kMaxCount << ", but are " << *bytes;
  if (lowlp::MulticastAttr::of(*this) && !getByWarp())
    return emitOpError("arrives in all blocks of a cluster, which the lanes of "
                       "a warp do: it must be by_warp");
  if (getLoadsEnded() && !getByWarp())
    return emitOpError("only lanes that arrive as one wait for loads: with "
                       "loads_ended it must be by_warp");
  return verifyBarrier(*this, getBase());
}

LogicalResult MbarrierWaitOp::verify() {
  return verifyBarrier(*this, getBase());
}

LogicalResult CopyBulkOp::verify() {
  if (failed(verifySpace(*this, "source", getSource().getType(),
                         MemorySpace::Global)) ||
      failed(verifySpace(*this, "destination", getDestination().getType(),
                         MemorySpace::Shared)) ||
      failed(verifyBarrier(*this, getBarrier())))
    return failure();
  return verifyBytes(*this, getBytes());
}

LogicalResult CopyBulkToGlobalOp::verify() {
  if (failed(verifySpace(*this, "source", getSource().getType(),
                         MemorySpace::Shared)) ||
      failed(verifySpace(*this, "destination", getDestination().getType(),
                         MemorySpace::Global)))
    return failure();
  return verifyBytes(*this, getBytes());
}

int64_t CopyTensorOp::getBytes() {
  int64_t bytes = getElementBytes();
  for (int64_t extent : getBox())
    bytes *= extent;
  return bytes;
}

LogicalResult CopyTensorOp::verify() {
  if (failed(verifySpace(*this, "source", getSource().getType(),
                         MemorySpace::Global)) ||
      failed(verifySpace(*this, "destination", getDestination().getType(),
                         MemorySpace::Shared)) ||
      failed(verifyBarrier(*this, getBarrier())))
    return failure();
  size_t rank = getBox().size();
  if (rank < 1 || rank > 5 || getExtents().size() != rank ||
      getOffsets().size() != rank || getStrides().size() + 1 != rank)
    return emitOpError("a box of 1 to 5 dimensions needs as many extents and "
                       "offsets and one stride less, but a box of ")
           << rank << " has " << getExtents().size() << ", "
           << getOffsets().size() << " and " << getStrides().size();
  for (int64_t extent : getBox())
    if (extent < 1 || extent > 256)
      return emitOpError("an extent of the box must be 1 to 256, but is ")
             << extent;
  int64_t elementBytes = getElementBytes();
  if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4)
    return emitOpError("element_bytes must be 1, 2 or 4, but is ")
           << elementBytes;
  int64_t swizzle = getSwizzle(), rowBytes = getBox().back() * elementBytes;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitOpError("swizzle must be 0, 32, 64 or 128, but is ") << swizzle;
  if (swizzle != 0 && swizzle != rowBytes)
    return emitOpError("with a swizzle of ")
           << swizzle << " bytes, a row of the box must take as many, but "
           << "takes " << rowBytes;
  if (rowBytes % kBulkBytes != 0)
    return emitOpError("a row of the box must take a multiple of ")
           << kBulkBytes << " bytes, but takes " << rowBytes;
  return success();
}
