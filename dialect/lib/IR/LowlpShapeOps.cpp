//===- LowlpShapeOps.cpp - iota, reduce, broadcast, transpose -------------===//
#include "ComputeType.h"
#include "Part.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

static LogicalResult verifySameElements(Operation *op, TileType source,
                                        TileType result) {
  if (source.getElementType() == result.getElementType())
    return success();
  return op->emitOpError("element types must match: source holds ")
         << source.getElementType() << ", result holds "
         << result.getElementType();
}

/// Every attribute `dim` names a dimension of the tile.
static LogicalResult verifyDim(Operation *op, int64_t dim, TileType tile) {
  if (dim >= 0 && dim < tile.getRank())
    return success();
  return op->emitOpError("dim must be at least 0 and less than ")
         << tile.getRank() << ", but is " << dim;
}

LogicalResult IotaOp::verify() {
  auto dim = static_cast<int64_t>(getDim());
  if (failed(verifyDim(*this, dim, getType())))
    return failure();
  Type element = getType().getElementType();
  bool isInteger =
      isWideInteger(element) && element.getIntOrFloatBitWidth() == 32;
  if (!element.isF32() && !isInteger)
    return emitOpError("indices are f32, si32 or ui32, but the tile holds ")
           << element;
  int64_t maxExtent = int64_t(1) << (isInteger ? 31 : 24);
  if (getType().getShape()[dim] > maxExtent)
    return emitOpError() << element << " holds indices of extents up to "
                         << maxExtent << ", but the extent is "
                         << getType().getShape()[dim];
  return success();
}

LogicalResult ReduceOp::verify() {
  TileType source = getSource().getType();
  if (failed(verifyArithmeticType(*this, source)) ||
      failed(verifySameElements(*this, source, getType())))
    return failure();
  Type element = source.getElementType();
  if (isWideInteger(element) && element.getIntOrFloatBitWidth() != 32)
    return emitOpError("combines integers of 32 bits, but the tile holds ")
           << element << ": cast it first";
  auto dim = static_cast<int64_t>(getDim());
  if (failed(verifyDim(*this, dim, source)))
    return failure();
  Layout kept = *reduce(source.getLayout(), {dim}, /*keepDims=*/true);
  Layout dropped = *reduce(source.getLayout(), {dim});
  const Layout &actual = getType().getLayout();
  if (actual == kept || actual == dropped)
    return success();
  return emitOpError("the layout of the result must be '")
         << str(kept) << "' or '" << str(dropped) << "', but is '"
         << str(actual) << "'";
}

std::optional<SmallVector<Layout>>
ReduceOp::getOperandLayouts(const Layout &result) {
  // More than one layout of the source reduces to the same.
  if (!(result == getType().getLayout()))
    return std::nullopt;
  return SmallVector<Layout>{getSource().getType().getLayout()};
}

std::optional<Layout> ReduceOp::getResultLayout(unsigned,
                                                const Layout &operand) {
  bool keepDims = getType().getRank() == operand.rank();
  return *reduce(operand, {static_cast<int64_t>(getDim())}, keepDims);
}

LogicalResult BroadcastOp::verify() {
  TileType source = getSource().getType();
  if (failed(verifySameElements(*this, source, getType())))
    return failure();
  Result<std::vector<int64_t>> locals =
      broadcastLocals(source.getLayout(), getType().getLayout());
  return locals ? success() : emitOpError(locals.error());
}

std::optional<SmallVector<Layout>>
BroadcastOp::getOperandLayouts(const Layout &result) {
  ArrayRef<int64_t> shape = getSource().getType().getShape();
  std::vector<int64_t> missing, ones;
  for (int64_t dim = 0; dim < result.rank(); ++dim) {
    int64_t own = dim - result.rank() + static_cast<int64_t>(shape.size());
    if (own < 0)
      missing.push_back(dim);
    if (own < 0 || shape[own] == 1)
      ones.push_back(dim);
  }
  Layout kept = *reduce(result, ones, /*keepDims=*/true);
  return SmallVector<Layout>{missing.empty() ? kept : *squeeze(kept, missing)};
}

std::optional<Layout> BroadcastOp::getResultLayout(unsigned, const Layout &) {
  return std::nullopt;
}

LogicalResult TransposeOp::verify() {
  TileType source = getSource().getType();
  if (failed(verifySameElements(*this, source, getType())))
    return failure();
  Result<Layout> expected = permute(source.getLayout(), getPermutation().vec());
  if (!expected)
    return emitOpError(expected.error());
  if (!(getType().getLayout() == *expected))
    return emitOpError("the layout of the transposed tile must be '")
           << str(*expected) << "', but is '" << str(getType().getLayout())
           << "'";
  return success();
}

std::optional<SmallVector<Layout>>
TransposeOp::getOperandLayouts(const Layout &result) {
  std::vector<int64_t> back(result.rank());
  for (auto [k, dim] : llvm::enumerate(getPermutation()))
    back[dim] = static_cast<int64_t>(k);
  return SmallVector<Layout>{*permute(result, back)};
}

std::optional<Layout> TransposeOp::getResultLayout(unsigned,
                                                   const Layout &operand) {
  return *permute(operand, getPermutation().vec());
}

//===----------------------------------------------------------------------===//
// PartOp
//===----------------------------------------------------------------------===//

FailureOr<Layout> lowlp::verifyPart(Operation *op, StringRef what,
                                    TileType tile, ArrayRef<int64_t> part) {
  if (static_cast<int64_t>(part.size()) >= tile.getRank())
    return op->emitOpError("a part names fewer than the ")
           << tile.getRank() << " dimensions of " << what
           << ", but this one names " << part.size();
  for (auto [dim, index] : llvm::enumerate(part))
    if (index < 0 || index >= tile.getShape()[dim])
      return op->emitOpError("index ")
             << dim << " of the part must be at least 0 and less than "
             << tile.getShape()[dim] << ", but is " << index;
  std::optional<Layout> layout =
      findPart(tile.getLayout(), static_cast<int64_t>(part.size()));
  if (!layout)
    return op->emitOpError("each thread must hold all of the first ")
           << part.size() << " dimensions of " << what << ", which the layout "
           << str(tile.getLayout()) << " spreads over threads";
  return *layout;
}

LogicalResult PartOp::verify() {
  TileType source = getSource().getType();
  if (getType().getElementType() != source.getElementType())
    return emitOpError("element types must match: source holds ")
           << source.getElementType() << ", result holds "
           << getType().getElementType();
  FailureOr<Layout> expected =
      verifyPart(*this, "the source", source, getIndices());
  if (failed(expected))
    return failure();
  if (getType().getLayout() != *expected)
    return emitOpError("the layout of the part must be '")
           << str(*expected) << "', but is '" << str(getType().getLayout())
           << "'";
  return success();
}
