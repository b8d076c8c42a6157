//===- LowlpCopyOps.cpp - asynchronous copies -----------------------------===//
#include "lowlp/IR/Lowlp.h"

using namespace mlir;
using namespace lowlp;

LogicalResult CopyAsyncOp::verify() {
  GlobalType view = getSource().getType();
  SharedType shared = getDestination().getType();
  if (!getSource().getDefiningOp<ViewGlobalOp>())
    return emitOpError("the source must be a result of lowlp.view_global");
  if (view.getElementType() != shared.getElementType())
    return emitOpError("element types must match: the view holds ")
           << view.getElementType() << ", shared memory holds "
           << shared.getElementType();
  if (static_cast<int64_t>(getSourceOffsets().size()) != view.getRank())
    return emitOpError("expected one source offset for each of the view's ")
           << view.getRank() << " dimensions, found "
           << getSourceOffsets().size();
  if (static_cast<int64_t>(getDestinationOffsets().size()) != shared.getRank())
    return emitOpError("expected one destination offset for each of the ")
           << shared.getRank() << " dimensions of the shared tile, found "
           << getDestinationOffsets().size();
  int64_t rank = static_cast<int64_t>(getShape().size());
  int64_t maxRank = std::min(view.getRank(), shared.getRank());
  if (rank < 1 || rank > maxRank)
    return emitOpError("shape must have 1 to ")
           << maxRank << " extents, but has " << rank;
  for (auto [extent, available] :
       llvm::zip_equal(getShape(), ArrayRef(shared.getShape()).take_back(rank)))
    if (extent < 1 || extent > available)
      return emitOpError("an extent of shape must be 1 to ")
             << available << ", which the shared tile has, but is " << extent;
  return success();
}
