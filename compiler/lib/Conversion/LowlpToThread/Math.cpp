//===- Math.cpp - functions of a tile's elements, in f32 ------------------===//
//
// Four functions exist on the machine: exp2, log2, rsqrt and sqrt. The others
// are made of them here, so that both targets run the same program:
//
//   exp(x)  = 2^p (1 + r ln 2), with p = x log2 e as f32 rounds it and r what
//             the rounding lost, |r| <= 2^-17; without r the result would be
//             wrong from the 17th bit on
//   tanh(x) = x (1 - x^2/3 + ...), the Taylor series up to x^13, below 0.5
//             1 - 2 / (e^2x + 1) above, where the difference loses no bits
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace lowlp;

SmallVector<Value> lowlp::extractAsF32(OpBuilder &builder, Location loc,
                                       Value registers) {
  SmallVector<Value> values;
  int64_t size = cast<VectorType>(registers.getType()).getNumElements();
  for (int64_t i = 0; i < size; ++i) {
    Value value = vector::ExtractOp::create(builder, loc, registers, i);
    if (!value.getType().isF32())
      value = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
    values.push_back(value);
  }
  return values;
}

Value lowlp::packFromF32(OpBuilder &builder, Location loc, VectorType type,
                         ArrayRef<Value> values) {
  Type element = type.getElementType();
  SmallVector<Value> elements;
  for (Value value : values)
    elements.push_back(element.isF32() ? value
                                       : arith::TruncFOp::create(
                                             builder, loc, element, value));
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

namespace {

/// Builds arithmetic on f32 at one location.
struct F32Builder {
  OpBuilder &builder;
  Location loc;

  Value constant(double value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
  }
  template <typename Op, typename... Values> Value make(Values... values) {
    return Op::create(builder, loc, values...);
  }
  Value isLess(Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b);
  }
};

} // namespace

static Value buildExp(F32Builder f, Value x) {
  constexpr double log2e = 1.4426950408889634;
  constexpr auto high = static_cast<float>(log2e);
  // 2^-185 is 0 in f32; the bound keeps r finite where x is -infinity.
  x = f.make<arith::MaximumFOp>(x, f.constant(-128.0));
  Value p = f.make<arith::MulFOp>(x, f.constant(high));
  Value r = f.make<math::FmaOp>(x, f.constant(high), f.make<arith::NegFOp>(p));
  r = f.make<math::FmaOp>(x, f.constant(log2e - high), r);
  Value power = f.make<math::Exp2Op>(p);
  Value factor = f.make<arith::MulFOp>(r, f.constant(0.6931471805599453));
  Value corrected = f.make<math::FmaOp>(power, factor, power);
  // An infinite power has no correction.
  Value isFinite =
      f.isLess(power, f.constant(std::numeric_limits<float>::infinity()));
  return f.make<arith::SelectOp>(isFinite, corrected, power);
}

/// The polynomial of tanh(x) / x - 1 in `square`, x squared, without its factor
/// `square`.
static Value buildTanhSeries(F32Builder f, Value square) {
  static constexpr double coefficients[] = {21844.0 / 6081075, -1382.0 / 155925,
                                            62.0 / 2835,       -17.0 / 315,
                                            2.0 / 15,          -1.0 / 3};
  Value sum = f.constant(coefficients[0]);
  for (double coefficient : ArrayRef(coefficients).drop_front())
    sum = f.make<math::FmaOp>(sum, square, f.constant(coefficient));
  return sum;
}

static Value buildTanh(F32Builder f, Value x) {
  Value magnitude = f.make<math::AbsFOp>(x);
  Value square = f.make<arith::MulFOp>(x, x);
  Value series = f.make<arith::MulFOp>(square, buildTanhSeries(f, square));
  Value small = f.make<math::FmaOp>(magnitude, series, magnitude);
  Value power = buildExp(f, f.make<arith::AddFOp>(magnitude, magnitude));
  Value quotient = f.make<arith::DivFOp>(
      f.constant(2.0), f.make<arith::AddFOp>(power, f.constant(1.0)));
  Value large = f.make<arith::SubFOp>(f.constant(1.0), quotient);
  Value isSmall = f.isLess(magnitude, f.constant(0.5));
  return f.make<math::CopySignOp>(
      f.make<arith::SelectOp>(isSmall, small, large), x);
}

/// Nothing is promised of a result below the normal numbers, so that the
/// machine needs no more than its instruction.
static Value buildExp2(F32Builder f, Value x) {
  return f.make<math::Exp2Op>(x, arith::FastMathFlags::afn);
}

template <typename Op> static Value buildOne(F32Builder f, Value x) {
  return f.make<Op>(x);
}

namespace {

/// A function that is computed for each element in f32.
template <typename BlockOp, Value (*build)(F32Builder, Value)>
struct FunctionPattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SmallVector<Value> values =
        extractAsF32(rewriter, loc, adaptor.getOperand());
    for (Value &value : values)
      value = build({rewriter, loc}, value);
    rewriter.replaceOp(
        op, packFromF32(rewriter, loc, getRegisterType(op.getType()), values));
    return success();
  }
};

} // namespace

void lowlp::populateMathPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns
      .add<FunctionPattern<ExpOp, buildExp>, FunctionPattern<Exp2Op, buildExp2>,
           FunctionPattern<Log2Op, buildOne<math::Log2Op>>,
           FunctionPattern<SqrtOp, buildOne<math::SqrtOp>>,
           FunctionPattern<RsqrtOp, buildOne<math::RsqrtOp>>,
           FunctionPattern<TanhOp, buildTanh>>(converter,
                                               patterns.getContext());
}
