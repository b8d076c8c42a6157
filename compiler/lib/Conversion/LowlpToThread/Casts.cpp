//===- Casts.cpp - between every element type -----------------------------===//
//
// f32 holds every value of every code of at most 8 bits exactly, so a cast is
// a decode to f32 and a rounding from it. Integers have a file of their own
// (IntegerCasts.cpp).
//
// Decoding a float eXmY: its exponent and mantissa bits, put where an f32 has
// them, are the value times 2^(bias - 127), subnormals included, because f32
// has subnormals too; one exact multiplication undoes the power of two.
//
// Encoding rounds to nearest, ties to the even code:
//   subnormal results   add 1.5 * 2^23 units of the last place: the sum's low
//                       bits are the code
//   normal results      subtract the difference of the biases from the bits of
//                       the f32 and round off the low mantissa bits; codes are
//                       in the order of their values, so a carry is right
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace lowlp;

namespace {

constexpr int kF32Bias = 127;
constexpr int kF32MantissaBits = 23;

/// Builds scalar arithmetic at one location.
struct Scalar {
  OpBuilder &builder;
  Location loc;

  Value i32(int64_t value) {
    return arith::ConstantOp::create(
        builder, loc,
        builder.getI32IntegerAttr(
            static_cast<int32_t>(static_cast<uint32_t>(value))));
  }
  Value f32(double value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(value)));
  }
  Value toF32(Value bits) {
    return arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
  }
  Value toBits(Value value) {
    return arith::BitcastOp::create(builder, loc, builder.getI32Type(), value);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value equal(Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
};

} // namespace

/// Replaces the value where the code is not a finite number.
static Value decodeSpecials(Scalar s, const ScalarFormat &format,
                            Value magnitude, Value value) {
  int64_t mantissaMask = (int64_t(1) << format.mantissaBits) - 1;
  int64_t infinity = ((int64_t(1) << format.exponentBits) - 1)
                     << format.mantissaBits;
  Value nan = s.f32(std::nan(""));
  if (format.specials == SpecialValues::IEEE) {
    Value isInfinity = s.equal(magnitude, s.i32(infinity));
    Value isSpecial =
        arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::uge,
                              magnitude, s.i32(infinity));
    Value special = s.select(isInfinity, s.f32(INFINITY), nan);
    return s.select(isSpecial, special, value);
  }
  if (format.specials == SpecialValues::NanOnly)
    return s.select(s.equal(magnitude, s.i32(infinity | mantissaMask)), nan,
                    value);
  return value;
}

Value lowlp::decodeToF32(OpBuilder &builder, Location loc,
                         const ScalarFormat &format, Value code) {
  Scalar s{builder, loc};
  int bias = format.exponentBias();
  Value magnitude =
      s.make<arith::AndIOp>(code, s.i32((int64_t(1) << (format.bits - 1)) - 1));
  Value placed = s.make<arith::ShLIOp>(
      magnitude, s.i32(kF32MantissaBits - format.mantissaBits));
  Value value = s.make<arith::MulFOp>(s.toF32(placed),
                                      s.f32(std::ldexp(1.0, kF32Bias - bias)));
  value = decodeSpecials(s, format, magnitude, value);
  Value sign = s.make<arith::ShLIOp>(
      s.make<arith::ShRUIOp>(code, s.i32(format.bits - 1)), s.i32(31));
  return s.toF32(s.make<arith::OrIOp>(s.toBits(value), sign));
}

/// The value clamped to [low, high]; NaN stays NaN.
static Value clamp(Scalar s, Value value, double low, double high) {
  Value above = s.compare(arith::CmpFPredicate::OGT, value, s.f32(high));
  value = s.select(above, s.f32(high), value);
  Value below = s.compare(arith::CmpFPredicate::OLT, value, s.f32(low));
  return s.select(below, s.f32(low), value);
}

static Value encodeInteger(Scalar s, const ScalarFormat &format, Value value) {
  Value isNaN = s.compare(arith::CmpFPredicate::UNO, value, value);
  value = s.select(isNaN, s.f32(0.0), value);
  value = clamp(s, value, format.min(), format.max());
  // The sum has a unit in the last place of 1, so it rounds to an integer.
  double magic = std::ldexp(1.5, kF32MantissaBits);
  Value sum = s.make<arith::AddFOp>(value, s.f32(magic));
  return s.make<arith::AndIOp>(s.toBits(sum),
                               s.i32((int64_t(1) << format.bits) - 1));
}

/// The code of a finite magnitude that is at most the largest of the format.
static Value encodeMagnitude(Scalar s, const ScalarFormat &format, int bias,
                             Value magnitude) {
  int mantissaBits = format.mantissaBits;
  double unit = std::ldexp(1.0, 1 - bias - mantissaBits);
  double magic = unit * std::ldexp(1.5, kF32MantissaBits);
  Value sum = s.make<arith::AddFOp>(magnitude, s.f32(magic));
  Value subnormal = s.make<arith::SubIOp>(
      s.toBits(sum), s.i32(llvm::bit_cast<uint32_t>(float(magic))));

  int dropped = kF32MantissaBits - mantissaBits;
  Value bits = s.make<arith::SubIOp>(
      s.toBits(magnitude), s.i32(int64_t(kF32Bias - bias) << kF32MantissaBits));
  Value odd = s.make<arith::AndIOp>(
      s.make<arith::ShRUIOp>(bits, s.i32(dropped)), s.i32(1));
  Value half = s.i32((int64_t(1) << (dropped - 1)) - 1);
  Value rounded = s.make<arith::AddIOp>(s.make<arith::AddIOp>(bits, half), odd);
  Value normal = s.make<arith::ShRUIOp>(rounded, s.i32(dropped));

  Value isSubnormal = s.compare(arith::CmpFPredicate::OLT, magnitude,
                                s.f32(std::ldexp(1.0, 1 - bias)));
  return s.select(isSubnormal, subnormal, normal);
}

/// NaN's code: the quiet one where the format has NaN, else the largest number.
static int64_t getNaNCode(const ScalarFormat &format) {
  int64_t magnitudeMask = (int64_t(1) << (format.bits - 1)) - 1;
  if (format.specials != SpecialValues::IEEE)
    return magnitudeMask;
  int64_t infinity = ((int64_t(1) << format.exponentBits) - 1)
                     << format.mantissaBits;
  return infinity | (int64_t(1) << (format.mantissaBits - 1));
}

Value lowlp::encodeFromF32(OpBuilder &builder, Location loc,
                           const ScalarFormat &format, Value value) {
  Scalar s{builder, loc};
  if (format.isInteger())
    return encodeInteger(s, format, value);
  int bias = format.exponentBias();
  Value bits = s.toBits(value);
  Value isNaN = s.compare(arith::CmpFPredicate::UNO, value, value);
  Value magnitude = s.toF32(s.make<arith::AndIOp>(bits, s.i32(0x7fffffff)));
  magnitude = clamp(s, magnitude, 0.0, format.max());
  Value code = encodeMagnitude(s, format, bias, magnitude);
  Value sign = s.make<arith::ShLIOp>(s.make<arith::ShRUIOp>(bits, s.i32(31)),
                                     s.i32(format.bits - 1));
  code = s.make<arith::OrIOp>(code, sign);
  // Last, so that the result is the same on machines that keep the sign of a
  // NaN and on those that drop it.
  return s.select(isNaN, s.i32(getNaNCode(format)), code);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

struct CastPattern : OpConversionPattern<CastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType from = op.getSource().getType(), to = op.getType();
    auto target = dyn_cast<IntegerType>(to.getElementType());
    if (auto source = dyn_cast<IntegerType>(from.getElementType());
        source && target) {
      SmallVector<Value> values =
          unpackIntegers(rewriter, loc, from, adaptor.getSource());
      for (Value &value : values)
        value = saturateInteger(rewriter, loc, source, target, value);
      rewriter.replaceOp(op, packIntegers(rewriter, loc, to, values));
      return success();
    }
    SmallVector<Value> values = decodeAll(
        rewriter, loc, from, to.getElementType(), adaptor.getSource());
    if (isWideInteger(to.getElementType())) {
      for (Value &value : values)
        value = convertF32ToInteger(rewriter, loc, target, value);
      rewriter.replaceOp(op, packIntegers(rewriter, loc, to, values));
      return success();
    }
    rewriter.replaceOp(op, encodeAll(rewriter, loc, to, values));
    return success();
  }

private:
  /// Every local element as an f32, which is to be rounded to `target`.
  static SmallVector<Value> decodeAll(OpBuilder &builder, Location loc,
                                      TileType from, Type target,
                                      Value registers) {
    SmallVector<Value> values;
    if (auto integer = dyn_cast<IntegerType>(from.getElementType())) {
      values = unpackIntegers(builder, loc, from, registers);
      for (Value &value : values)
        value = convertIntegerToF32(builder, loc, integer, target, value);
      return values;
    }
    std::optional<ScalarFormat> format = getScalarFormat(from.getElementType());
    if (format) {
      PackedBits bits(builder, loc, registers);
      for (int64_t i = 0; i < from.getNumLocals(); ++i)
        values.push_back(
            decodeToF32(builder, loc, *format,
                        bits.extract(i * format->bits, format->bits)));
      return values;
    }
    for (int64_t i = 0; i < from.getNumLocals(); ++i) {
      Value value = vector::ExtractOp::create(builder, loc, registers, i);
      if (!value.getType().isF32())
        value =
            arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
      values.push_back(value);
    }
    return values;
  }

  static Value encodeAll(OpBuilder &builder, Location loc, TileType to,
                         ArrayRef<Value> values) {
    std::optional<ScalarFormat> format = getScalarFormat(to.getElementType());
    if (format) {
      PackedBits bits(builder, loc, to.getBitsPerThread());
      for (auto [i, value] : llvm::enumerate(values))
        bits.insert(i * format->bits, format->bits,
                    encodeFromF32(builder, loc, *format, value));
      return bits.getVector();
    }
    SmallVector<Value> elements;
    for (Value value : values)
      elements.push_back(to.getElementType().isF32()
                             ? value
                             : arith::TruncFOp::create(
                                   builder, loc, to.getElementType(), value));
    return vector::FromElementsOp::create(builder, loc, getRegisterType(to),
                                          elements);
  }
};

struct ViewPattern : OpConversionPattern<ViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ViewOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType to = op.getType();
    Value words =
        toWords(rewriter, loc, op.getSource().getType(), adaptor.getSource());
    rewriter.replaceOp(op, fromWords(rewriter, loc, to, words));
    return success();
  }
};

} // namespace

void lowlp::populateCastPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<CastPattern, ViewPattern>(converter, patterns.getContext());
}
