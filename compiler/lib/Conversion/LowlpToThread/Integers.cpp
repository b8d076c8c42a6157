//===- Integers.cpp - bits and quotients of integers ----------------------===//
//
// AND, OR and XOR take a thread's words whole. All else works on one element
// at a time, as an i32 whose upper bits are the element's sign or zero.
//
//===----------------------------------------------------------------------===//
#include "MaskedElements.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWordBits = 32;

static int64_t getWidth(TileType tile) {
  return cast<IntegerType>(tile.getElementType()).getWidth();
}

static bool isSigned(TileType tile) {
  return tile.getElementType().isSignedInteger();
}

/// The elements as i32s whose upper bits are zero, whether signed or not.
static SmallVector<Value> unpackCodes(OpBuilder &builder, Location loc,
                                      TileType tile, Value registers) {
  auto code = IntegerType::get(builder.getContext(), getWidth(tile),
                               IntegerType::Unsigned);
  return unpackIntegers(builder, loc, tile.cloneWith(code), registers);
}

namespace {

/// Builds arithmetic on i32 at one location.
struct WordBuilder {
  OpBuilder &builder;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value no() {
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
};

template <typename BlockOp, typename ArithOp>
struct WordsPattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, ArithOp::create(rewriter, getNamedLoc(op),
                                           adaptor.getLhs(), adaptor.getRhs()));
    return success();
  }
};

struct NotPattern : OpConversionPattern<NotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(NotOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    VectorType type = getRegisterType(op.getType());
    // Bits of the last word that belong to no element stay zero.
    int64_t bits = op.getType().getBitsPerThread();
    unsigned width = type.getElementTypeBitWidth();
    SmallVector<APInt> ones;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      ones.push_back(APInt::getLowBitsSet(
          width, std::min<int64_t>(width, bits - i * width)));
    Value mask = arith::ConstantOp::create(rewriter, loc,
                                           DenseElementsAttr::get(type, ones));
    rewriter.replaceOp(
        op, arith::XOrIOp::create(rewriter, loc, adaptor.getOperand(), mask));
    return success();
  }
};

/// An op on pairs of elements that `build` computes.
template <typename BlockOp,
          Value (*build)(WordBuilder, BlockOp, Value lhs, Value rhs)>
struct PairPattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getType();
    SmallVector<Value> values =
        unpackIntegers(rewriter, loc, tile, adaptor.getLhs());
    // An amount of bits has no sign.
    bool isShift =
        std::is_same_v<BlockOp, ShlOp> || std::is_same_v<BlockOp, ShrOp>;
    SmallVector<Value> others =
        isShift ? unpackCodes(rewriter, loc, tile, adaptor.getRhs())
                : unpackIntegers(rewriter, loc, tile, adaptor.getRhs());
    for (auto [value, other] : llvm::zip_equal(values, others))
      value = build({rewriter, loc}, op, value, other);
    rewriter.replaceOp(op, packIntegers(rewriter, loc, tile, values));
    return success();
  }
};

} // namespace

/// `shifted` unless it was shifted by 32 bits or more, which arith leaves open.
static Value guardShift(WordBuilder w, TileType tile, Value shifted,
                        Value amount) {
  // A code of 5 bits is less than 32.
  if (getWidth(tile) <= 5)
    return shifted;
  Value fits =
      w.compare(arith::CmpIPredicate::ult, amount, w.constant(kWordBits));
  return w.select(fits, shifted, w.constant(0));
}

static Value buildShl(WordBuilder w, ShlOp op, Value value, Value amount) {
  return guardShift(w, op.getType(), w.make<arith::ShLIOp>(value, amount),
                    amount);
}

static Value buildShr(WordBuilder w, ShrOp op, Value value, Value amount) {
  if (!isSigned(op.getType()))
    return guardShift(w, op.getType(), w.make<arith::ShRUIOp>(value, amount),
                      amount);
  // 31 bits to the right only the sign is left, whatever the width.
  Value most = w.make<arith::MinUIOp>(amount, w.constant(kWordBits - 1));
  return w.make<arith::ShRSIOp>(value, most);
}

/// Quotient and rest, rounded down. Where the division is undefined another one
/// takes its place, because a CPU would trap: by 0, which the CPU target has
/// reported by then unless its checks are off; and of the smallest i32 by -1,
/// where a division by 1 gives the wrapped quotient and the rest 0. Of elements
/// that are not `isInside` of the view that the divisor was loaded from nothing
/// is reported; null: all are.
static std::pair<Value, Value> buildQuotient(WordBuilder w, TileType tile,
                                             bool isNonzero, Value isInside,
                                             Value value, Value divisor) {
  Value zero = w.constant(0), one = w.constant(1);
  Value isZero = w.compare(arith::CmpIPredicate::eq, divisor, zero);
  if (!isNonzero) {
    Value isValid = w.compare(arith::CmpIPredicate::ne, divisor, zero);
    if (isInside)
      isValid = w.make<arith::OrIOp>(
          isValid, w.compare(arith::CmpIPredicate::eq, isInside, w.no()));
    simt::AssertOp::create(w.builder, w.loc, isValid, "division by zero");
  }
  if (!isSigned(tile)) {
    divisor = w.select(isZero, one, divisor);
    return {w.make<arith::DivUIOp>(value, divisor),
            w.make<arith::RemUIOp>(value, divisor)};
  }
  Value isMin = w.compare(arith::CmpIPredicate::eq, value,
                          w.constant(std::numeric_limits<int32_t>::min()));
  Value isMinusOne =
      w.compare(arith::CmpIPredicate::eq, divisor, w.constant(-1));
  Value traps =
      w.make<arith::OrIOp>(isZero, w.make<arith::AndIOp>(isMin, isMinusOne));
  divisor = w.select(traps, one, divisor);
  Value quotient = w.make<arith::DivSIOp>(value, divisor);
  Value rest = w.make<arith::RemSIOp>(value, divisor);
  // Rounded towards 0, the rest has the sign of the value.
  Value isInexact = w.compare(arith::CmpIPredicate::ne, rest, zero);
  Value signsDiffer = w.compare(arith::CmpIPredicate::slt,
                                w.make<arith::XOrIOp>(rest, divisor), zero);
  Value isAbove = w.make<arith::AndIOp>(isInexact, signsDiffer);
  return {w.select(isAbove, w.make<arith::SubIOp>(quotient, one), quotient),
          w.select(isAbove, w.make<arith::AddIOp>(rest, divisor), rest)};
}

/// Whether all elements are one number that is known, and not 0.
static bool isKnownNonzero(Value tile) {
  auto splat = tile.getDefiningOp<SplatOp>();
  APInt number;
  return splat && matchPattern(splat.getValue(), m_ConstantInt(&number)) &&
         !number.isZero();
}

namespace {

/// `lowlp.floor_div` and `lowlp.mod`.
template <typename BlockOp>
struct QuotientPattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getType();
    SmallVector<Value> values =
        unpackIntegers(rewriter, loc, tile, adaptor.getLhs());
    SmallVector<Value> divisors =
        unpackIntegers(rewriter, loc, tile, adaptor.getRhs());
    bool isNonzero = isKnownNonzero(op.getRhs());
    MaskedElements masked(rewriter, loc, op.getRhs(), tile.getLayout());
    for (auto [i, value] : llvm::enumerate(values)) {
      Value inside = isNonzero ? Value() : masked.isInside(int64_t(i));
      auto [quotient, rest] = buildQuotient({rewriter, loc}, tile, isNonzero,
                                            inside, value, divisors[i]);
      value = std::is_same_v<BlockOp, ModOp> ? rest : quotient;
    }
    rewriter.replaceOp(op, packIntegers(rewriter, loc, tile, values));
    return success();
  }
};

struct PopcountPattern : OpConversionPattern<PopcountOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PopcountOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SmallVector<Value> values = unpackCodes(
        rewriter, loc, op.getOperand().getType(), adaptor.getOperand());
    for (Value &value : values)
      value = math::CtPopOp::create(rewriter, loc, value);
    rewriter.replaceOp(op, packIntegers(rewriter, loc, op.getType(), values));
    return success();
  }
};

struct CountLeadingZerosPattern : OpConversionPattern<CountLeadingZerosOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CountLeadingZerosOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getOperand().getType();
    WordBuilder w{rewriter, loc};
    SmallVector<Value> values =
        unpackCodes(rewriter, loc, tile, adaptor.getOperand());
    for (Value &value : values)
      value = w.make<arith::SubIOp>(
          math::CountLeadingZerosOp::create(rewriter, loc, value),
          w.constant(kWordBits - getWidth(tile)));
    rewriter.replaceOp(op, packIntegers(rewriter, loc, op.getType(), values));
    return success();
  }
};

struct FunnelShiftPattern : OpConversionPattern<FunnelShiftOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FunnelShiftOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    WordBuilder w{rewriter, loc};
    bool isRight = op.getDirection() == ShiftDirection::Right;
    SmallVector<Value> values;
    for (int64_t i = 0; i < op.getType().getNumLocals(); ++i) {
      auto extract = [&](Value registers) -> Value {
        return vector::ExtractOp::create(rewriter, loc, registers, i);
      };
      Value low = extract(adaptor.getLow()), high = extract(adaptor.getHigh());
      Value amount = extract(adaptor.getAmount());
      Value value = simt::FunnelShiftOp::create(rewriter, loc, low, high,
                                                amount, isRight);
      if (op.getMode() == ShiftMode::Clamp) {
        Value isWhole =
            w.compare(arith::CmpIPredicate::uge, amount, w.constant(kWordBits));
        value = w.select(isWhole, isRight ? high : low, value);
      }
      values.push_back(value);
    }
    rewriter.replaceOp(op, packIntegers(rewriter, loc, op.getType(), values));
    return success();
  }
};

} // namespace

void lowlp::populateIntegerPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns
      .add<WordsPattern<AndOp, arith::AndIOp>, WordsPattern<OrOp, arith::OrIOp>,
           WordsPattern<XorOp, arith::XOrIOp>, NotPattern,
           PairPattern<ShlOp, buildShl>, PairPattern<ShrOp, buildShr>,
           QuotientPattern<FloorDivOp>, QuotientPattern<ModOp>, PopcountPattern,
           CountLeadingZerosPattern, FunnelShiftPattern>(converter,
                                                         patterns.getContext());
}
