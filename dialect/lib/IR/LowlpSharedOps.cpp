//===- LowlpSharedOps.cpp - shared memory ---------------------------------===//
#include "lowlp/IR/Lowlp.h"

using namespace mlir;
using namespace lowlp;

/// What every access of `tile` in `shared` must satisfy.
static LogicalResult verifyAccess(Operation *op, TileType tile,
                                  SharedType shared, size_t numOffsets) {
  int64_t rank = shared.getRank();
  if (tile.getElementType() != shared.getElementType())
    return op->emitOpError("element types must match: the tile holds ")
           << tile.getElementType() << ", shared memory holds "
           << shared.getElementType();
  if (static_cast<int64_t>(numOffsets) != rank)
    return op->emitOpError("expected one offset for each of the ")
           << rank << " dimensions of the shared tile, found " << numOffsets;
  if (tile.getRank() > rank)
    return op->emitOpError("the tile has ")
           << tile.getRank() << " dimensions, but the shared tile has only "
           << rank;
  if (auto kernel = op->getParentOfType<KernelOp>())
    if (tile.getNumThreads() != static_cast<int64_t>(kernel.getNumThreads()))
      return op->emitOpError("the tile is held by ")
             << tile.getNumThreads() << " threads, but the block has "
             << kernel.getNumThreads();
  return success();
}

LogicalResult SynchronizeWarpgroupsOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel || kernel.getNumThreads() % kThreadsPerWarpgroup == 0)
    return success();
  return emitOpError("needs whole warpgroups of ")
         << kThreadsPerWarpgroup << " threads, but the block has "
         << kernel.getNumThreads() << " threads";
}

int64_t AllocSharedOp::getAlignBytes() {
  int64_t alignBytes = kAlignBytes;
  for (Operation *user : getShared().getUsers())
    if (auto copy = dyn_cast<CopyTensorOp>(user))
      alignBytes = std::max(alignBytes, copy.getAlignBytes());
    else if (auto product = dyn_cast<WgmmaOp>(user))
      alignBytes = std::max(alignBytes, product.getAlignBytes());
  return alignBytes;
}

LogicalResult AllocSharedOp::verify() {
  IntegerAttr offset = getOffsetAttr();
  if (offset && (offset.getInt() < 0 || offset.getInt() % kAlignBytes != 0))
    return emitOpError("must begin at a multiple of ")
           << kAlignBytes << " bytes, but begins at " << offset.getInt();
  return success();
}

LogicalResult LoadSharedOp::verify() {
  return verifyAccess(*this, getTile().getType(), getSource().getType(),
                      getOffsets().size());
}

LogicalResult StoreSharedOp::verify() {
  return verifyAccess(*this, getTile().getType(), getDestination().getType(),
                      getOffsets().size());
}
