//===- LowlpPackedOps.cpp - weights in the packed format ------------------===//
#include "lowlp/Decode/DecodePlan.h"
#include "lowlp/Decode/PackedTile.h"
#include "lowlp/IR/DecodedType.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <cmath>

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Views and loads
//===----------------------------------------------------------------------===//

SmallVector<OpFoldResult> ViewPackedOp::getMixedShape() {
  return getMixedValues(getStaticShape(), getDynamicShape(), getContext());
}

LogicalResult ViewPackedOp::verify() {
  if (!getSource().getType().getElementType().isUnsignedInteger(32))
    return emitOpError("packed weights are ui32, but the source holds ")
           << getSource().getType().getElementType();
  if (getStaticShape() != getView().getType().getShape())
    return emitOpError("extents must match the type of the view, ")
           << getView().getType();
  if (llvm::count(getStaticShape(), ShapedType::kDynamic) !=
      static_cast<int64_t>(getDynamicShape().size()))
    return emitOpError("expected one value for each dynamic extent");
  return success();
}

/// An attribute that may be absent, as the libraries take it.
static std::optional<int> toInt(std::optional<int64_t> number) {
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Checks that `tile` can be taken from units of the placement.
static LogicalResult verifyPackedTile(Operation *op, TileType tile,
                                      const Placement &placement, int64_t step,
                                      std::optional<int64_t> book) {
  if (step < 0 || step >= placement.getNumSteps())
    return op->emitOpError("step must be in 0..")
           << placement.getNumSteps() - 1 << ", but is " << step;
  if (book && (*book < 0 || *book >= placement.getFormat().codes))
    return op->emitOpError("book must be in 0..")
           << placement.getFormat().codes - 1 << ", but is " << *book;
  if (book && !placement.isOfVectors())
    return op->emitOpError(
               "book is for codes of vectors, but the placement is ")
           << placement.name();
  Result<PackedTile> match = matchPackedTile(
      tile.getLayout(), placement, static_cast<int>(step), toInt(book));
  if (!match)
    return op->emitOpError(match.error());
  return success();
}

LogicalResult LoadPackedOp::verify() {
  PackedType view = getSource().getType();
  if (!getSource().getDefiningOp<ViewPackedOp>())
    return emitOpError("the view must be a result of lowlp.view_packed");
  TileType tile = getTile().getType();
  if (tile.getElementType() != view.getElementType())
    return emitOpError("element types must match: the tile holds ")
           << tile.getElementType() << ", the view holds "
           << view.getElementType();
  if (getOffsets().size() != view.getShape().size())
    return emitOpError("expected ")
           << view.getShape().size() << " offsets, one for each dimension, but "
           << "found " << getOffsets().size();
  const Placement &placement = view.getPlacement();
  for (auto [name, offset, unit] :
       {std::tuple("row", getRow(), placement.getUnitRows()),
        std::tuple("k", getK(), placement.getUnitK())})
    if (std::optional<int64_t> value = getConstantIntValue(offset);
        value && *value % unit)
      return emitOpError() << name << " must be a multiple of " << unit
                           << ", but is " << *value;
  return verifyPackedTile(*this, tile, placement, getStep(), getBook());
}

std::optional<SmallVector<Layout>>
LoadPackedOp::getOperandLayouts(const Layout &result) {
  const Placement &placement = getSource().getType().getPlacement();
  if (!matchPackedTile(result, placement, static_cast<int>(getStep()),
                       toInt(getBook())))
    return std::nullopt;
  return SmallVector<Layout>();
}

std::optional<Layout> LoadPackedOp::getResultLayout(unsigned, const Layout &) {
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Checks that `words` are what the tile of weights is taken from.
static LogicalResult verifyWords(Operation *op, TileType words, TileType tile,
                                 const Placement &placement, int64_t step,
                                 std::optional<int64_t> book = std::nullopt) {
  if (failed(verifyPackedTile(op, tile, placement, step, book)))
    return failure();
  if (!words.getElementType().isUnsignedInteger(32))
    return op->emitOpError("the words must be ui32, but are ")
           << words.getElementType();
  Layout expected = matchPackedTile(tile.getLayout(), placement,
                                    static_cast<int>(step), toInt(book))
                        ->words;
  if (words.getLayout() != expected)
    return op->emitOpError("the words must be held as ")
           << str(expected) << ", but are as " << str(words.getLayout());
  return success();
}

/// Whether a tile of `type` holds codes of a format.
static bool holdsCodes(Type type, const CodeFormat &format) {
  // Indices are unsigned integers.
  if (format.kind == CodeFormat::Kind::Table ||
      format.kind == CodeFormat::Kind::Vectors)
    return type.isUnsignedInteger(format.getHeldBits());
  std::optional<ScalarFormat> scalar = getScalarFormat(type);
  return scalar && *CodeFormat::of(*scalar) == format;
}

LogicalResult UnpackOp::verify() {
  const Placement &placement = *getPlacement();
  const CodeFormat &format = placement.getFormat();
  Type element = getCodes().getType().getElementType();
  if (auto slice = dyn_cast<IntegerType>(element);
      slice && static_cast<int>(slice.getWidth()) < format.bits) {
    auto bit = static_cast<int64_t>(getBit());
    if (!slice.isUnsigned() || bit < 0 || bit + slice.getWidth() > format.bits)
      return emitOpError("a slice is of unsigned integers within the ")
             << format.bits << " bits of a code, but is " << element
             << " from bit " << bit << " on";
    if (format.kind == CodeFormat::Kind::Float)
      return emitOpError("the placement ")
             << placement.name() << " holds no codes of type " << element;
  } else if (getBit() != 0) {
    return emitOpError("a whole code begins at bit 0, not at ") << getBit();
  } else if (!holdsCodes(element, format)) {
    return emitOpError("the placement ")
           << placement.name() << " holds no codes of type " << element;
  }
  return verifyWords(*this, getWords().getType(), getCodes().getType(),
                     placement, getStep(), getBook());
}

/// Checks that a tile has one number for each row of the fragments.
static LogicalResult verifyRows(DecodeOp op, StringRef name, TileType rows) {
  TileType fragments = op.getFragments().getType();
  if (rows.getElementType() != fragments.getElementType())
    return op.emitOpError()
           << name << " must hold " << fragments.getElementType()
           << ", but hold " << rows.getElementType();
  int64_t m = fragments.getShape()[0];
  if (rows.getRank() != 2 || rows.getShape()[0] % m != 0 ||
      rows.getShape()[1] != 1)
    return op.emitOpError()
           << name << " must be " << m
           << "x1, or a multiple of the rows by slices, but are " << rows;
  Result<Layout> stacked =
      stackSlices(fragments.getLayout(), rows.getShape()[0] / m);
  if (!stacked)
    return op.emitOpError() << name << ": " << stacked.error();
  Result<std::vector<int64_t>> locals =
      broadcastLocals(rows.getLayout(), *stacked);
  if (!locals)
    return op.emitOpError() << name << ": " << locals.error();
  return success();
}

/// Whether the rows of all tiles are those of the first.
static bool haveTilesSameRows(const DecodePlan &plan) {
  for (size_t row = 2; row < plan.rows.size(); ++row)
    if (!(plan.rows[row] == plan.rows[row % 2]))
      return false;
  return true;
}

bool lowlp::isDecodedType(Type element, ComputeType compute) {
  switch (compute) {
  case ComputeType::F16:
    return element.isF16();
  case ComputeType::BF16:
    return element.isBF16();
  case ComputeType::S8:
    return element.isUnsignedInteger(8) || element.isSignedInteger(8);
  case ComputeType::E4M3:
    return isa<Float8E4M3FNType>(element);
  case ComputeType::B1:
    return false;
  }
  return false;
}

/// Whether `element` is the type of what a plan makes: of bytes, those with the
/// plan's sign.
static bool isMadeBy(const DecodePlan &plan, ComputeType compute,
                     Type element) {
  return isDecodedType(element, compute) &&
         (compute != ComputeType::S8 ||
          element.isUnsignedInteger() ==
              (plan.ending == DecodeEnding::Unsigned));
}

LogicalResult DecodeOp::verify() {
  const DecodePlan *plan = &getPlan().getPlan();
  // The attribute has checked that there is one.
  const Placement *const placement = *Placement::find(plan->placement);
  Type element = getFragments().getType().getElementType();
  ComputeType compute = placement->getCompute();
  if (!isMadeBy(*plan, compute, element))
    return emitOpError("the plan's numbers are ")
           << (plan->ending == DecodeEnding::Unsigned ? "unsigned bytes"
                                                      : getName(compute))
           << ", but the result holds " << element;
  if (failed(verifyWords(*this, getWords().getType(), getFragments().getType(),
                         *placement, getStep())))
    return failure();
  bool isScaled = plan->ending == DecodeEnding::Weights;
  if (isScaled != static_cast<bool>(getScales()) ||
      isScaled != static_cast<bool>(getZeros()))
    return emitOpError("scales and zeros are given where the plan's ending is "
                       "weights, and only there");
  if (isScaled && (failed(verifyRows(*this, "scales", getScales().getType())) ||
                   failed(verifyRows(*this, "zeros", getZeros().getType()))))
    return failure();
  PackedTile tile = *matchPackedTile(getFragments().getType().getLayout(),
                                     *placement, static_cast<int>(getStep()));
  // Warps that share units all take the slots of the first tile, or each those
  // of its own.
  int numTiles = 1;
  if (tile.areUnitsShared) {
    if (!findTileShift(*placement))
      numTiles = placement->getNumRowTiles();
    else if (!haveTilesSameRows(*plan))
      return emitOpError(
          "the warps share units, so the plan's rows must be the "
          "same for each tile of 16");
  }
  for (int number = 0; number < numTiles; ++number)
    for (int slot : tile.getSlots()) {
      slot += getSlotsOfTile(*placement, number).front();
      if (!llvm::is_contained(plan->slots, slot))
        return emitOpError("the plan does not decode slot ") << slot;
    }
  return success();
}

LogicalResult RowConstantsOp::verify() {
  TileType tile = getTile().getType();
  bool isInteger = tile.getElementType().isSignedInteger(32);
  if (!tile.getElementType().isF32() && !isInteger)
    return emitOpError("the tile must hold f32 or si32, but holds ")
           << tile.getElementType();
  for (float value : getValues())
    if (isInteger && (std::trunc(value) != value || std::abs(value) > 0x1p24f))
      return emitOpError("the values of a tile of si32 must be whole numbers "
                         "up to 2^24, but one is ")
             << value;
  if (getValues().empty())
    return emitOpError("expected at least 1 value");
  return success();
}
