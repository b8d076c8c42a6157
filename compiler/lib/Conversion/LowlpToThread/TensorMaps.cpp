//===- TensorMaps.cpp - which tensor maps a kernel needs ------------------===//
//
// The runtime makes a map before the launch, so it must know extents and
// strides of the view as functions of the kernel's integer parameters
// (ViewFormulas.h).
//
//===----------------------------------------------------------------------===//
#include "TensorMaps.h"

#include "lowlp/Analysis/ViewFormulas.h"
#include "lowlp/IR/LowlpRings.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace lowlp;

/// PTX ISA, "Tensor": the extents of a box, its rows, and the dimensions of a
/// tensor.
static constexpr int64_t kMaxBoxExtent = 256;
static constexpr int64_t kRowBytes = 16;
static constexpr int64_t kMaxRank = 5;

/// The elements of a part of a row, if whole rows are copied that a box does
/// not hold, and a tensor whose rows are these parts has one that does; else 0.
static int64_t getRowPart(CopyTensorOp copy, ArrayRef<int64_t> box) {
  GlobalType view = copy.getSource().getType();
  int64_t row = copy.getShape().back();
  if (box.back() == row || copy.getSwizzleBytes() != 0 ||
      MulticastAttr::countBlocks(copy) > 1 || view.getRank() >= kMaxRank ||
      view.getShape().back() != row ||
      getConstantIntValue(copy.getSourceOffsets().back()) != 0)
    return 0;
  int64_t bytes = *getElementBits(view.getElementType()) / 8;
  for (int64_t part = kMaxBoxExtent; part * bytes >= kRowBytes; --part)
    if (row % part == 0 && part * bytes % kRowBytes == 0)
      return row / part <= kMaxBoxExtent ? part : 0;
  return 0;
}

TensorBox lowlp::getTensorBox(CopyTensorOp copy) {
  TensorBox found;
  found.box.assign(
      copy.getSource().getType().getRank() - copy.getShape().size(), 1);
  found.shape = found.box;
  llvm::append_range(found.shape, copy.getShape());
  SmallVector<int64_t> box = *copy.getBox();
  found.rowPart = getRowPart(copy, box);
  if (found.rowPart == 0) {
    llvm::append_range(found.box, box);
    return found;
  }
  found.shape.back() /= found.rowPart;
  found.shape.push_back(found.rowPart);
  found.box = found.shape;
  return found;
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
  TensorBox box = getTensorBox(copy);
  if (box.rowPart) {
    formulas.extents.back() =
        getAffineConstantExpr(box.box[box.box.size() - 2], copy.getContext());
    formulas.extents.push_back(
        getAffineConstantExpr(box.rowPart, copy.getContext()));
    strides.push_back(
        getAffineConstantExpr(box.rowPart * elementBytes, copy.getContext()));
  }
  unsigned numDims = kernel.getGrid().getNumDims();
  NamedAttrList map;
  map.set("parameter", builder.getI64IntegerAttr(pointer.getArgNumber()));
  map.set("element_bytes", builder.getI64IntegerAttr(elementBytes));
  map.set("extents", AffineMapAttr::get(AffineMap::get(
                         numDims, 0, formulas.extents, copy.getContext())));
  map.set("strides", AffineMapAttr::get(AffineMap::get(numDims, 0, strides,
                                                       copy.getContext())));
  map.set("box", builder.getDenseI64ArrayAttr(box.box));
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
