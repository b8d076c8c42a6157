//===- CodedProducts.cpp - products of decoded weights --------------------===//
#include "CodedProducts.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace lowlp;

OpOperand &Product::getA() const {
  if (DotOp dot = asDot())
    return dot.getAMutable();
  return cast<WgmmaOp>(op).getAMutable();
}

TileType Product::getTypeOfA() const {
  return cast<TileType>(getA().get().getType());
}

Value Product::getAddend() const {
  if (DotOp dot = asDot())
    return dot.getC();
  return cast<WgmmaOp>(op).getC();
}

void Product::setAddend(Value value) const {
  if (DotOp dot = asDot())
    return dot.getCMutable().assign(value);
  cast<WgmmaOp>(op).getCMutable().assign(value);
}

std::optional<double> lowlp::getSplat(Value tile) {
  auto splat = tile.getDefiningOp<SplatOp>();
  FloatAttr value;
  if (splat && matchPattern(splat.getValue(), m_Constant(&value)))
    return value.getValue().convertToDouble();
  APInt integer;
  if (splat && matchPattern(splat.getValue(), m_ConstantInt(&integer)))
    return static_cast<double>(integer.getSExtValue());
  return std::nullopt;
}

Value lowlp::getRepeatedColumn(Value tile) {
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  TileType source = broadcast.getSource().getType();
  bool isColumn = source.getRank() == 2 && source.getShape()[1] == 1 &&
                  source.getShape()[0] == broadcast.getType().getShape()[0];
  return isColumn ? broadcast.getSource() : Value();
}

/// The tile whose registers a tile sees in other dimensions; else the tile.
static Value stripView(Value tile) {
  auto view = tile.getDefiningOp<ViewOp>();
  bool isAlike = view && view.getSource().getType().getElementType() ==
                             view.getType().getElementType();
  return isAlike ? view.getSource() : tile;
}

/// `cast(codes)`; null for anything else.
static UnpackOp getCast(Value tile) {
  auto cast = tile.getDefiningOp<CastOp>();
  return cast ? cast.getSource().getDefiningOp<UnpackOp>() : UnpackOp();
}

/// `cast(codes) * scales` and `(cast(codes) - zeros) * scales`, of codes that
/// may be seen in slices of K.
static CodedWeights getScaled(MulOp product) {
  for (auto [weights, factors] :
       {std::pair(product.getLhs(), product.getRhs()),
        std::pair(product.getRhs(), product.getLhs())}) {
    CodedWeights found;
    found.scales = getRepeatedColumn(factors);
    if (!found.scales)
      continue;
    if (auto difference = weights.getDefiningOp<SubOp>()) {
      found.zeros = getRepeatedColumn(difference.getRhs());
      if (found.zeros)
        found.codes = getCast(stripView(difference.getLhs()));
    } else {
      found.codes = getCast(stripView(weights));
    }
    if (found.codes)
      return found;
  }
  return {};
}

/// Whether operand `a` has its codes where they are, while they are scaled in a
/// tile of type `scaled`: in `a` itself, or in its slices of K.
static bool isBySlices(const CodedWeights &weights, TileType scaled, Value a) {
  if (!weights.codes)
    return false;
  const Layout &layout = cast<TileType>(a.getType()).getLayout();
  UnpackOp codes = weights.codes;
  int64_t rows = layout.shape()[0];
  if (!(codes.getCodes().getType().getLayout() == layout) ||
      scaled.getRank() != 2 || scaled.getShape()[0] % rows != 0)
    return false;
  Result<Layout> stacked = stackSlices(layout, scaled.getShape()[0] / rows);
  return stacked && *stacked == scaled.getLayout();
}

CodedWeights lowlp::getWeights(Product product) {
  return getWeights(product.getA().get());
}

CodedWeights lowlp::getWeights(Value a) {
  if (auto scaled = stripView(a).getDefiningOp<MulOp>()) {
    CodedWeights found = getScaled(scaled);
    return isBySlices(found, scaled.getType(), a) ? found : CodedWeights();
  }
  // Codes of 8 bits may be operands as they are.
  if (auto codes = a.getDefiningOp<UnpackOp>())
    return {codes};
  auto cast = a.getDefiningOp<CastOp>();
  if (!cast)
    return {};
  auto scaled = cast.getSource().getDefiningOp<MulOp>();
  if (!scaled)
    return {cast.getSource().getDefiningOp<UnpackOp>()};
  auto wide = scaled.getLhs().getDefiningOp<CastOp>();
  std::optional<double> factor = getSplat(scaled.getRhs());
  if (!wide || !factor || *factor <= 0 ||
      std::ldexp(1.0, std::ilogb(*factor)) != *factor)
    return {};
  return {wide.getSource().getDefiningOp<UnpackOp>(), std::ilogb(*factor),
          wide.getType().getElementType()};
}

bool lowlp::areAlike(Product first, Product second) {
  CodedWeights a = getWeights(first), b = getWeights(second);
  return a.codes && b.codes && a.exponent == b.exponent && a.wide == b.wide &&
         !a.scales && !b.scales &&
         first.getTypeOfA().getElementType() ==
             second.getTypeOfA().getElementType() &&
         a.codes.getPlacement() == b.codes.getPlacement() &&
         a.codes.getCodes().getType().getElementType() ==
             b.codes.getCodes().getType().getElementType();
}

double lowlp::getShift(const CodedWeights &weights) {
  Type element = weights.codes->getResult(0).getType();
  element = cast<TileType>(element).getElementType();
  return getStoredValue(*getScalarFormat(element)).shift;
}

bool lowlp::isHeld(Type type, double number) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    double count = std::ldexp(1.0, static_cast<int>(integer.getWidth()));
    double least = integer.isSigned() ? -count / 2 : 0;
    return std::trunc(number) == number && number >= least &&
           number < least + count;
  }
  bool isRounded = false;
  APFloat value(number);
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &isRounded);
  return value.isFinite() && !isRounded;
}

bool lowlp::areExact(const CodedWeights &weights, Type operand) {
  double shift = getShift(weights);
  UnpackOp codes = weights.codes;
  const CodeFormat &format = codes.getPlacement()->getFormat();
  for (int code = 0; code < 1 << format.bits; ++code) {
    std::optional<double> stored = format.value(static_cast<uint16_t>(code));
    if (!stored)
      continue;
    double value = *stored + shift;
    double scaled = std::ldexp(value, weights.exponent);
    if (!isHeld(operand, scaled) ||
        (weights.wide &&
         !(isHeld(weights.wide, value) && isHeld(weights.wide, scaled))))
      return false;
  }
  return true;
}
