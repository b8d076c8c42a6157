//===- LowlpCopyOps.cpp - asynchronous copies -----------------------------===//
#include "CopiedPart.h"

using namespace mlir;
using namespace lowlp;

LogicalResult lowlp::verifyCopiedPart(Operation *op, const CopiedPart &part) {
  auto view = cast<GlobalType>(part.view.getType());
  StringRef viewName = part.isToShared ? "source" : "destination";
  StringRef sharedName = part.isToShared ? "destination" : "source";
  if (!part.view.getDefiningOp<ViewGlobalOp>())
    return op->emitOpError("the ")
           << viewName << " must be a result of lowlp.view_global";
  if (view.getElementType() != part.shared.getElementType())
    return op->emitOpError("element types must match: the view holds ")
           << view.getElementType() << ", shared memory holds "
           << part.shared.getElementType();
  if (static_cast<int64_t>(part.numViewOffsets) != view.getRank())
    return op->emitOpError("expected one ")
           << viewName << " offset for each of the view's " << view.getRank()
           << " dimensions, found " << part.numViewOffsets;
  if (static_cast<int64_t>(part.numSharedOffsets) != part.shared.getRank())
    return op->emitOpError("expected one ")
           << sharedName << " offset for each of the " << part.shared.getRank()
           << " dimensions of the shared tile, found " << part.numSharedOffsets;
  int64_t rank = static_cast<int64_t>(part.shape.size());
  int64_t maxRank = std::min(view.getRank(), part.shared.getRank());
  if (rank < 1 || rank > maxRank)
    return op->emitOpError("shape must have 1 to ")
           << maxRank << " extents, but has " << rank;
  for (auto [extent, available] : llvm::zip_equal(
           part.shape, ArrayRef(part.shared.getShape()).take_back(rank)))
    if (extent < 1 || extent > available)
      return op->emitOpError("an extent of shape must be 1 to ")
             << available << ", which the shared tile has, but is " << extent;
  return success();
}

LogicalResult CopyAsyncOp::verify() {
  return verifyCopiedPart(*this, {getSource(), getSourceOffsets().size(),
                                  getDestination().getType(),
                                  getDestinationOffsets().size(), getShape()});
}
