//===- LowlpBulkOps.cpp - bulk copies -------------------------------------===//
#include "CopiedPart.h"

#include "lowlp/IR/LowlpRings.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kBulkBytes = 16;

/// The bytes of a row of `part`, or failure if they are not whole chunks.
static FailureOr<int64_t> verifyRowBytes(Operation *op,
                                         const CopiedPart &part) {
  int64_t bits =
      part.shape.back() * *getElementBits(part.shared.getElementType());
  if (bits % (8 * kBulkBytes) != 0)
    return op->emitOpError("a row of the part must take a multiple of ")
           << kBulkBytes << " bytes, but takes " << bits << " bits";
  return bits / 8;
}

/// Fails if the last stride of the view is known not to be 1.
static LogicalResult verifyUnitStride(Operation *op, Value view) {
  OpFoldResult stride =
      view.getDefiningOp<ViewGlobalOp>().getMixedStrides().back();
  if (getConstantIntValue(stride) != 1)
    return op->emitOpError("the last stride of the view must be 1");
  return success();
}

/// What copies of rows demand beyond the part itself.
static LogicalResult verifyRows(Operation *op, const CopiedPart &part) {
  if (failed(verifyCopiedPart(op, part)) ||
      failed(verifyUnitStride(op, part.view)) ||
      failed(verifyRowBytes(op, part)))
    return failure();
  const SharedLayout &layout = part.shared.getLayout();
  int64_t run = layout.contiguousAddresses(layout.rank() - 1);
  if (run != layout.shape().back())
    return op->emitOpError("the rows of the shared tile must be whole, but "
                           "its layout has runs of ")
           << run << " of " << layout.shape().back() << " elements";
  int64_t rowBits =
      layout.shape().back() * *getElementBits(part.shared.getElementType());
  if (rowBits % (8 * kBulkBytes) != 0)
    return op->emitOpError("a row of the shared tile must take a multiple of ")
           << kBulkBytes << " bytes, but takes " << rowBits << " bits";
  return success();
}

LogicalResult CopyBulkOp::verify() {
  return verifyRows(*this, {getSource(), getSourceOffsets().size(),
                            getDestination().getType(),
                            getDestinationOffsets().size(), getShape()});
}

LogicalResult CopyBulkToGlobalOp::verify() {
  return verifyRows(*this, {getDestination(), getDestinationOffsets().size(),
                            getSource().getType(), getSourceOffsets().size(),
                            getShape(), /*isToShared=*/false});
}

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

/// What a swizzle covers at most of a row; longer rows are cut into panels.
static constexpr int64_t kPanelBytes = 128;
/// After how many rows the swizzle of a panel begins anew.
static constexpr int64_t kPanelRows = 8;

/// The layout that a tensor copy writes: boxes of rows one after the other,
/// with a swizzle of `swizzleBytes`, or none for 0.
static Result<SharedLayout> makeBoxLayout(ArrayRef<int64_t> shape,
                                          int64_t elementBytes,
                                          int64_t swizzleBytes) {
  std::vector<int64_t> ones(shape.size(), 1), outer(shape), inner(ones);
  if (!swizzleBytes)
    return SharedLayout::plain(Layout::local(outer));
  int64_t rank = static_cast<int64_t>(shape.size());
  int64_t chunk = kBulkBytes / elementBytes;
  int64_t columns = swizzleBytes / elementBytes;
  outer[rank - 2] = 1;
  outer[rank - 1] = shape[rank - 1] / columns;
  inner[rank - 1] = chunk;
  // The hardware swaps by bits 7 to 9 of the address.
  int64_t logStep = swizzleBytes == 128 ? 0 : swizzleBytes == 64 ? 1 : 2;
  return SharedLayout::swizzled(
      Layout::local(outer), Layout::local({shape[rank - 2], columns / chunk}),
      /*dim=*/1, logStep, Layout::local(inner));
}

int64_t CopyTensorOp::getSwizzleBytes() {
  SharedType shared = getDestination().getType();
  if (!shared.getLayout().swizzle())
    return 0;
  int64_t bits = *getElementBits(shared.getElementType());
  return std::min(shared.getShape().back() * bits / 8, kPanelBytes);
}

/// PTX ISA, "cp.async.bulk.tensor": extents of a box, and at what multiple of
/// bytes it begins in shared memory.
static constexpr int64_t kMaxBoxExtent = 256;
static constexpr int64_t kBoxAlignBytes = 128;

/// What one of `blocks` blocks copies at once of a part of such a shape, if
/// `box` is what one block alone would: a share along the first dimension but
/// the last that divides. Such shares lie one after the other in shared memory,
/// each from a multiple of `alignBytes` on.
static std::optional<SmallVector<int64_t>>
cutForBlocks(ArrayRef<int64_t> shape, SmallVector<int64_t> box, int64_t blocks,
             int64_t elementBits, int64_t alignBytes) {
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    if (shape[d] % blocks != 0)
      continue;
    // A panel of all rows is cut into no shares that lie together.
    if (shape[d] / box[d] % blocks != 0) {
      if (box.back() != shape.back())
        return std::nullopt;
      std::fill(box.begin(), box.begin() + static_cast<ptrdiff_t>(d), 1);
      box[d] = shape[d] / blocks;
    }
    int64_t bits = elementBits;
    for (int64_t extent : box)
      bits *= extent;
    if (bits % (8 * alignBytes) != 0)
      return std::nullopt;
    return box;
  }
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> CopyTensorOp::getBox() {
  SmallVector<int64_t> box(getShape());
  int64_t bits = *getElementBits(getSource().getType().getElementType());
  int64_t blocks = MulticastAttr::countBlocks(*this);
  auto cut = [&]() -> std::optional<SmallVector<int64_t>> {
    if (blocks == 1)
      return box;
    return cutForBlocks(getShape(), box, blocks, bits, getAlignBytes());
  };
  if (llvm::any_of(getShape().drop_back(),
                   [](int64_t extent) { return extent > kMaxBoxExtent; }))
    return std::nullopt;
  int64_t panelColumns = kPanelBytes * 8 / bits;
  if (box.size() >= 2 && getSwizzleBytes() && box.back() > panelColumns) {
    // A panel of all rows at once.
    std::fill(box.begin(), box.end() - 2, 1);
    box.back() = panelColumns;
    return cut();
  }
  if (box.back() <= kMaxBoxExtent)
    return cut();
  // A row in pieces, each a copy of its own.
  int64_t chunk = kBoxAlignBytes * 8 / bits;
  int64_t pieces = llvm::divideCeil(box.back(), kMaxBoxExtent);
  while (pieces * chunk <= box.back() && box.back() % (pieces * chunk) != 0)
    ++pieces;
  if (getSwizzleBytes() || box.back() % (pieces * chunk) != 0)
    return std::nullopt;
  std::fill(box.begin(), box.end() - 1, 1);
  box.back() /= pieces;
  return cut();
}

LogicalResult CopyTensorOp::verify() {
  SharedType shared = getDestination().getType();
  CopiedPart part = {getSource(), getSourceOffsets().size(), shared,
                     getDestinationOffsets().size(), getShape()};
  if (failed(verifyCopiedPart(*this, part)) ||
      failed(verifyUnitStride(*this, getSource())))
    return failure();
  int64_t bits = *getElementBits(shared.getElementType());
  if (bits != 8 && bits != 16 && bits != 32)
    return emitOpError("elements must have 8, 16 or 32 bits, but have ")
           << bits;
  FailureOr<int64_t> rowBytes = verifyRowBytes(*this, part);
  if (failed(rowBytes))
    return failure();
  std::optional<int64_t> last =
      getConstantIntValue(OpFoldResult(getSourceOffsets().back()));
  if (last && *last * bits / 8 % 16 != 0)
    return emitOpError("the last offset in the view must be a multiple of 16 "
                       "bytes, but is ")
           << *last << " elements of " << bits << " bits";
  if (int64_t rank = getSource().getType().getRank(); rank > 5)
    return emitOpError("the view must have 1 to 5 dimensions, but has ")
           << rank;
  if (int64_t blocks = MulticastAttr::countBlocks(*this);
      blocks > 1 && !getBox()) {
    return emitOpError("shape must divide into parts for ")
           << blocks
           << " blocks along its first dimensions, each a multiple of "
           << getAlignBytes() << " bytes, but is " << getShape();
  }
  if (!getBox())
    return emitOpError("an extent of shape must be at most 256, the last one "
                       "without a swizzle a multiple of one that is, but "
                       "shape is ")
           << getShape();
  if (getShape() != ArrayRef(shared.getShape()).take_back(getShape().size()))
    return emitOpError("shape must be the last extents of the shared tile");
  const SharedLayout &layout = shared.getLayout();
  if (!layout.swizzle()) {
    if (layout.layout() != Layout::local(layout.shape()))
      return emitOpError("the layout of the shared tile must be row-major or "
                         "have the swizzle of tensor copies, but is ")
             << layout.str();
    return success();
  }
  if (*rowBytes != 32 && *rowBytes != 64 && *rowBytes % kPanelBytes != 0)
    return emitOpError("rows of a swizzled tile must take 32, 64 or a multiple "
                       "of 128 bytes, but take ")
           << *rowBytes;
  if (int64_t rows = shared.getShape().drop_back().back();
      *rowBytes > kPanelBytes && rows % kPanelRows != 0)
    return emitOpError("a swizzled tile with rows of more than 128 bytes must "
                       "have a multiple of 8 rows, but has ")
           << rows;
  Result<SharedLayout> wanted =
      makeBoxLayout(shared.getShape(), bits / 8, getSwizzleBytes());
  if (!wanted || *wanted != layout)
    return emitOpError("a tensor copy of rows of ")
           << *rowBytes << " bytes lays them out as "
           << (wanted ? wanted->str() : std::string("local")) << ", but the "
           << "layout of the shared tile is " << layout.str();
  return success();
}
