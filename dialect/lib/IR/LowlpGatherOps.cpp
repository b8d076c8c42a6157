//===- LowlpGatherOps.cpp - accesses at indices read on the device --------===//
#include "Access.h"

#include "lowlp/Layout/LayoutAlgebra.h"

using namespace mlir;
using namespace lowlp;

LogicalResult LoadScalarOp::verify() {
  Type source = getSource().getType(), element;
  int64_t rank;
  if (auto view = dyn_cast<GlobalType>(source)) {
    if (!getSource().getDefiningOp<ViewGlobalOp>())
      return emitOpError("the source must be a result of lowlp.view_global");
    element = view.getElementType();
    rank = view.getRank();
  } else {
    element = cast<SharedType>(source).getElementType();
    rank = cast<SharedType>(source).getRank();
  }
  if (static_cast<int64_t>(getOffsets().size()) != rank)
    return emitOpError("expected one offset for each of the ")
           << rank << " dimensions, found " << getOffsets().size();
  bool isInteger = isa<IntegerType>(element);
  bool isFloat = element.isF16() || element.isBF16() || element.isF32();
  if (*getElementBits(element) % 8 != 0 || (!isInteger && !isFloat))
    return emitOpError("reads integers of 8, 16 or 32 bits, f16, bf16 or f32, "
                       "but the elements are ")
           << element;
  Type value = getValue().getType();
  if (isInteger != value.isIndex())
    return emitOpError("the result of ")
           << element << " must be " << (isInteger ? "an index" : "an f32")
           << ", but is " << value;
  return success();
}

/// What gathers and scatters must satisfy.
static LogicalResult verifyIndexed(Operation *op, TileType tile, Value view,
                                   size_t numOffsets, TileType indices,
                                   int64_t dim) {
  if (failed(verifyGlobalAccess(op, tile, view, numOffsets)))
    return failure();
  if (dim < 0 || dim >= tile.getRank())
    return op->emitOpError("dim must be at least 0 and less than ")
           << tile.getRank() << ", but is " << dim;
  if (!isa<IntegerType>(indices.getElementType()))
    return op->emitOpError("indices must be integers, but are ")
           << indices.getElementType();
  Result<std::vector<int64_t>> locals =
      broadcastLocals(indices.getLayout(), tile.getLayout());
  if (!locals)
    return op->emitOpError("the indices do not reach the tile: ")
           << locals.error();
  return success();
}

LogicalResult GatherGlobalOp::verify() {
  return verifyIndexed(*this, getTile().getType(), getSource(),
                       getOffsets().size(), getIndices().getType(),
                       static_cast<int64_t>(getDim()));
}

LogicalResult ScatterGlobalOp::verify() {
  return verifyIndexed(*this, getTile().getType(), getDestination(),
                       getOffsets().size(), getIndices().getType(),
                       static_cast<int64_t>(getDim()));
}
