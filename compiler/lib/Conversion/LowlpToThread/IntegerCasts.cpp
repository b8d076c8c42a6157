//===- IntegerCasts.cpp - from integers, to integers, between them --------===//
//
// An integer is an i32 here, whatever its width. Between integers a cast
// clamps.
//
// An i32 has more bits than an f32. Towards narrower floats it must not be
// rounded twice, so one of more than 24 bits is rounded to odd first: of its 8
// low bits only whether one of them is set is kept, in the bit above. 24 bits
// are left, which f32 holds, and no float narrower than f32 can tell the
// difference, because the bit that decides its rounding lies above.
//
// To an integer an f32 is rounded to nearest, ties to even.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace lowlp;

static constexpr unsigned kWordBits = 32;
static constexpr int kDroppedBits = 8;

static Value makeI32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(
      builder, loc,
      builder.getI32IntegerAttr(
          static_cast<int32_t>(static_cast<uint32_t>(value))));
}

static int64_t getMin(IntegerType type) {
  return type.isSigned() ? -(int64_t(1) << (type.getWidth() - 1)) : 0;
}

static int64_t getMax(IntegerType type) {
  return (int64_t(1) << (type.getWidth() - (type.isSigned() ? 1 : 0))) - 1;
}

Value lowlp::saturateInteger(OpBuilder &builder, Location loc, IntegerType from,
                             IntegerType to, Value value) {
  if (getMin(to) > getMin(from))
    value = arith::MaxSIOp::create(builder, loc, value,
                                   makeI32(builder, loc, getMin(to)));
  if (getMax(to) >= getMax(from))
    return value;
  Value max = makeI32(builder, loc, getMax(to));
  if (from.isSigned())
    return arith::MinSIOp::create(builder, loc, value, max);
  return arith::MinUIOp::create(builder, loc, value, max);
}

/// An integer of more than 24 bits rounded to odd, others as they are.
static Value roundToOdd(OpBuilder &builder, Location loc, bool isSigned,
                        Value value) {
  auto i32 = [&](int64_t number) { return makeI32(builder, loc, number); };
  int64_t lowBits = (int64_t(1) << kDroppedBits) - 1;
  Value low = arith::AndIOp::create(builder, loc, value, i32(lowBits));
  // The sum has the bit above the low ones exactly when one of them is set.
  Value carry = arith::AddIOp::create(builder, loc, low, i32(lowBits));
  Value kept = arith::OrIOp::create(builder, loc, value, carry);
  kept = arith::AndIOp::create(builder, loc, kept, i32(~lowBits));
  Value magnitude =
      isSigned ? math::AbsIOp::create(builder, loc, value).getResult() : value;
  Value isLong =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, magnitude,
                            i32(int64_t(1) << (kWordBits - kDroppedBits)));
  return arith::SelectOp::create(builder, loc, isLong, kept, value);
}

/// An integer of up to 16 bits as f32, out of the bits that 1.5 * 2^23 and the
/// integer have as a sum. A conversion to f32 that is rounded to fewer bits
/// later would become one to these, and take a slow pipe of the GPU.
static Value addToBits(OpBuilder &builder, Location loc, Value value) {
  constexpr uint32_t kBits = 0x4B400000;
  constexpr float kNumber = 12582912.0f;
  Value bits =
      arith::AddIOp::create(builder, loc, value, makeI32(builder, loc, kBits));
  Value sum =
      arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
  Value number =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(kNumber));
  return arith::SubFOp::create(builder, loc, sum, number);
}

Value lowlp::convertIntegerToF32(OpBuilder &builder, Location loc,
                                 IntegerType from, Type to, Value value) {
  if (from.getWidth() == kWordBits && !to.isF32())
    value = roundToOdd(builder, loc, from.isSigned(), value);
  if (from.getWidth() <= 16 && !to.isF32())
    return addToBits(builder, loc, value);
  if (from.isSigned())
    return arith::SIToFPOp::create(builder, loc, builder.getF32Type(), value);
  return arith::UIToFPOp::create(builder, loc, builder.getF32Type(), value);
}

Value lowlp::convertF32ToInteger(OpBuilder &builder, Location loc,
                                 IntegerType to, Value value) {
  auto f32 = [&](double number) -> Value {
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(static_cast<float>(number)));
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  };
  Type word = builder.getI32Type();
  Value isNaN = compare(arith::CmpFPredicate::UNO, value, value);
  value = arith::SelectOp::create(builder, loc, isNaN, f32(0), value);
  Value rounded = math::RoundEvenOp::create(builder, loc, value);
  Value integer =
      to.isSigned()
          ? arith::FPToSIOp::create(builder, loc, word, rounded).getResult()
          : arith::FPToUIOp::create(builder, loc, word, rounded).getResult();
  // Both bounds are f32s: the smallest integer, and one more than the largest.
  Value isLow = compare(arith::CmpFPredicate::OLT, rounded,
                        f32(static_cast<double>(getMin(to))));
  Value isHigh = compare(arith::CmpFPredicate::OGE, rounded,
                         f32(static_cast<double>(getMax(to)) + 1));
  integer = arith::SelectOp::create(builder, loc, isLow,
                                    makeI32(builder, loc, getMin(to)), integer);
  return arith::SelectOp::create(builder, loc, isHigh,
                                 makeI32(builder, loc, getMax(to)), integer);
}
