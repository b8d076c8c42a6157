//===- TensorMaps.cpp - which tensor maps a kernel needs ------------------===//
//
// The runtime makes a map before the launch, so it must know extents and
// strides of the view as functions of the kernel's integer parameters
// (ViewFormulas.h).
//
//===----------------------------------------------------------------------===//
#include "TensorMaps.h"

#include "lowlp/Analysis/ViewFormulas.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace lowlp;

SmallVector<int64_t> lowlp::getTensorBox(CopyTensorOp copy) {
  SmallVector<int64_t> box(
      copy.getSource().getType().getRank() - copy.getShape().size(), 1);
  llvm::append_range(box, *copy.getBox());
  return box;
}

/// The dictionary of the map that `copy` needs.
static FailureOr<Attribute> describeMap(CopyTensorOp copy) {
  auto kernel = copy->getParentOfType<KernelOp>();
  auto view = copy.getSource().getDefiningOp<ViewGlobalOp>();
  auto pointer = dyn_cast<BlockArgument>(view.getSource());
  if (!pointer || pointer.getOwner()->getParentOp() != kernel)
    return copy.emitOpError("the view must be of a parameter of the kernel");
  auto align = kernel.getArgAttrOfType<IntegerAttr>(
      pointer.getArgNumber(), LowlpDialect::kAlignAttrName);
  if (!align || align.getInt() % 16 != 0)
    return copy.emitOpError("the parameter of the view must promise an "
                            "alignment of 16 bytes");
  Builder builder(copy.getContext());
  int64_t elementBytes =
      *getElementBits(copy.getSource().getType().getElementType()) / 8;
  ViewFormulas formulas = getViewFormulas(view, kernel);
  SmallVector<AffineExpr> strides;
  for (AffineExpr stride : ArrayRef(formulas.strides).drop_back()) {
    strides.push_back(stride ? stride * elementBytes : stride);
    auto known = dyn_cast_or_null<AffineConstantExpr>(strides.back());
    if (known && known.getValue() % 16 != 0)
      return copy.emitOpError("the strides of the view but the last must be "
                              "multiples of 16 bytes, but one is ")
             << known.getValue();
  }
  if (!llvm::all_of(formulas.extents, [](AffineExpr e) { return bool(e); }) ||
      !llvm::all_of(strides, [](AffineExpr e) { return bool(e); }))
    return copy.emitOpError("extents and strides of the view must be affine "
                            "functions of the kernel's parameters");
  unsigned numDims = kernel.getGrid().getNumDims();
  NamedAttrList map;
  map.set("parameter", builder.getI64IntegerAttr(pointer.getArgNumber()));
  map.set("element_bytes", builder.getI64IntegerAttr(elementBytes));
  map.set("extents", AffineMapAttr::get(AffineMap::get(
                         numDims, 0, formulas.extents, copy.getContext())));
  map.set("strides", AffineMapAttr::get(AffineMap::get(numDims, 0, strides,
                                                       copy.getContext())));
  map.set("box", builder.getDenseI64ArrayAttr(getTensorBox(copy)));
  map.set("swizzle", builder.getI64IntegerAttr(copy.getSwizzleBytes()));
  return Attribute(map.getDictionary(copy.getContext()));
}

/// What the place of the box in shared memory must satisfy.
static LogicalResult verifyBoxPlace(CopyTensorOp copy) {
  if (!copy.getDestination().getDefiningOp<AllocSharedOp>())
    return copy.emitOpError(
        "the destination must be a result of lowlp.alloc_shared");
  size_t rank = copy.getShape().size();
  for (Value offset : copy.getDestinationOffsets().take_back(rank))
    if (getConstantIntValue(offset) != 0)
      return copy.emitOpError("the destination offsets along the part must "
                              "be 0");
  SharedType shared = copy.getDestination().getType();
  int64_t bytes = *getElementBits(shared.getElementType()) / 8;
  for (int64_t extent : copy.getShape())
    bytes *= extent;
  int64_t align = copy.getAlignBytes();
  // Parts that an offset tells apart.
  for (size_t d = shared.getRank() - rank; d-- > 0;) {
    if (getConstantIntValue(copy.getDestinationOffsets()[d]) != 0 &&
        bytes % align != 0)
      return copy.emitOpError("the parts of the shared tile must take a "
                              "multiple of ")
             << align << " bytes, but take " << bytes;
    bytes *= shared.getShape()[d];
  }
  return success();
}

FailureOr<TensorMapPlan> lowlp::planTensorMaps(Operation *root) {
  TensorMapPlan plan;
  WalkResult result = root->walk([&](CopyTensorOp copy) {
    if (failed(verifyBoxPlace(copy)))
      return WalkResult::interrupt();
    FailureOr<Attribute> map = describeMap(copy);
    if (failed(map))
      return WalkResult::interrupt();
    auto kernel = copy->getParentOfType<KernelOp>();
    SmallVector<Attribute> &maps = plan.maps[kernel];
    auto found = llvm::find(maps, *map);
    plan.number[copy] = found - maps.begin();
    if (found == maps.end())
      maps.push_back(*map);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return plan;
}
