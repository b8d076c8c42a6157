//===- LowlpMemoryOps.cpp - views, loads and stores -----------------------===//
#include "Access.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// ViewGlobalOp
//===----------------------------------------------------------------------===//

SmallVector<OpFoldResult> ViewGlobalOp::getMixedShape() {
  return getMixedValues(getStaticShape(), getDynamicShape(), getContext());
}

SmallVector<OpFoldResult> ViewGlobalOp::getMixedStrides() {
  if (!isRowMajor())
    return getMixedValues(getStaticStrides(), getDynamicStrides(),
                          getContext());
  // Row-major: each stride is the product of the extents to its right, which
  // is a number as long as those are.
  Builder builder(getContext());
  SmallVector<OpFoldResult> strides(getStaticShape().size());
  std::optional<int64_t> stride = 1;
  for (int64_t d = static_cast<int64_t>(strides.size()) - 1; d >= 0; --d) {
    if (stride)
      strides[d] = builder.getIndexAttr(*stride);
    int64_t extent = getStaticShape()[d];
    stride = stride && !ShapedType::isDynamic(extent)
                 ? std::optional(*stride * extent)
                 : std::nullopt;
  }
  return strides;
}

/// True when the bits of a row-major tensor can be counted in 64 bits: then no
/// stride and no address overflows.
static bool isCountable(ArrayRef<int64_t> shape) {
  int64_t bits = 32;
  return llvm::all_of(shape, [&](int64_t extent) {
    return ShapedType::isDynamic(extent) ||
           !llvm::MulOverflow(bits, extent, bits);
  });
}

LogicalResult ViewGlobalOp::verify() {
  GlobalType view = getView().getType();
  if (getSource().getType().getElementType() != view.getElementType())
    return emitOpError("element types must match: source holds ")
           << getSource().getType().getElementType() << ", view holds "
           << view.getElementType();
  if (getStaticShape() != view.getShape())
    return emitOpError("extents must match the type of the view, ") << view;
  if (isRowMajor() && !isCountable(getStaticShape()))
    return emitOpError("is too large for addresses of 64 bits, ") << view;
  if (!isRowMajor() &&
      getStaticStrides().size() != static_cast<size_t>(view.getRank()))
    return emitOpError("expected one stride for each of the ")
           << view.getRank() << " dimensions, found "
           << getStaticStrides().size();
  for (int64_t stride : getStaticStrides())
    if (!ShapedType::isDynamic(stride) && stride < 0)
      return emitOpError("strides must not be negative, but one is ") << stride;
  if (llvm::count(getStaticShape(), ShapedType::kDynamic) !=
          static_cast<int64_t>(getDynamicShape().size()) ||
      llvm::count(getStaticStrides(), ShapedType::kDynamic) !=
          static_cast<int64_t>(getDynamicStrides().size()))
    return emitOpError("expected one value for each dynamic extent and stride");
  return success();
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

LogicalResult lowlp::verifyGlobalAccess(Operation *op, TileType tile,
                                        Value view, size_t numOffsets) {
  auto viewType = cast<GlobalType>(view.getType());
  if (!view.getDefiningOp<ViewGlobalOp>())
    return op->emitOpError("the view must be a result of lowlp.view_global");
  if (tile.getElementType() != viewType.getElementType())
    return op->emitOpError("element types must match: the tile holds ")
           << tile.getElementType() << ", the view holds "
           << viewType.getElementType();
  if (static_cast<int64_t>(numOffsets) != viewType.getRank())
    return op->emitOpError("expected one offset for each of the view's ")
           << viewType.getRank() << " dimensions, found " << numOffsets;
  if (tile.getRank() > viewType.getRank())
    return op->emitOpError("the tile has ")
           << tile.getRank() << " dimensions, but the view has only "
           << viewType.getRank();
  if (auto kernel = op->getParentOfType<KernelOp>())
    if (tile.getNumThreads() != static_cast<int64_t>(kernel.getNumThreads()))
      return op->emitOpError("the tile is held by ")
             << tile.getNumThreads() << " threads, but a block has "
             << kernel.getNumThreads();
  return success();
}

LogicalResult LoadGlobalOp::verify() {
  return verifyGlobalAccess(*this, getTile().getType(), getSource(),
                            getOffsets().size());
}

LogicalResult StoreGlobalOp::verify() {
  return verifyGlobalAccess(*this, getTile().getType(), getDestination(),
                            getOffsets().size());
}
