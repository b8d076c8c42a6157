//===- EntryCasts.cpp - entries of a byte to f16 and bf16 -----------------===//
//
// What lowlp.lookup_vectors has looked up is cast four bytes at a time, by few
// instructions for two values:
//
//   si8 to f16        bytes q + 128 become the low bytes of halves 0x64..,
//                     which are 1024 + q + 128; 1152 is taken off, exactly. 128
//                     is added as entries are loaded into the cache, where all
//                     that is looked up is cast so, or to si16
//   si8 to si16       the same bytes become those of integers, and 128 is taken
//                     off
//   si8 to bf16       the low 7 bits become those of bf16 0x43.., which are 128
//                     + them; 128, or 256 where the byte is negative, is taken
//                     off, exactly
//   e4m3 to f16       two by one instruction, where the GPU has it
//                     (simt.widen_floats)
//   e4m3 to bf16      sign, exponent and mantissa go to where a bf16 has them:
//                     the value times 2^-120, subnormals included
//
// All other casts are those of any tile (Casts.cpp). A code of e4m3 that is no
// number would become one: the CPU target reports it.
//
//===----------------------------------------------------------------------===//
#include "Codebooks.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace lowlp;

static constexpr StringLiteral kNoNumber =
    "an entry of the codebook is no number";
/// The biases of the exponents of bf16 and f8E4M3FN.
static constexpr int kBFloatBias = 127, kE4M3Bias = 7;

namespace {

/// Turns words of four entries into two words of two halves each.
class EntryCast {
public:
  EntryCast(OpBuilder &builder, Location loc, Type from, Type to, bool isRaised)
      : builder(builder), loc(loc), from(from), to(to), isRaised(isRaised) {}

  /// The result has as many halves as `type`.
  Value emit(Value words, VectorType type) {
    SmallVector<Value> pairs;
    for (int64_t i = 0; i < type.getNumElements(); i += 4) {
      Value word = vector::ExtractOp::create(builder, loc, words, i / 4);
      for (int64_t pair : {0, 1})
        if (i + 2 * pair < type.getNumElements())
          pairs.push_back(from.isInteger() ? placeInteger(word, pair)
                                           : placeFloat(word, pair));
    }
    if (from.isInteger() && to.isBF16()) {
      Value bits = asHalves(maskAll(pairs, 0xff7fff7f), type);
      Value sign = asHalves(maskAll(pairs, 0xff80ff80), type);
      return arith::SubFOp::create(builder, loc, bits, sign);
    }
    Value halves = asHalves(pairs, type);
    if (to.isInteger())
      return arith::SubIOp::create(builder, loc, halves, constant(type, 128));
    if (from.isInteger())
      return arith::SubFOp::create(builder, loc, halves, constant(type, 1152));
    if (to.isF16())
      return halves;
    return arith::MulFOp::create(
        builder, loc, halves,
        constant(type, std::ldexp(1, kBFloatBias - kE4M3Bias)));
  }

private:
  Value i32(uint32_t value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value constant(VectorType type, double value) {
    Attribute number = builder.getI16IntegerAttr(static_cast<int16_t>(value));
    if (!to.isInteger())
      number = builder.getFloatAttr(to, value);
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, number));
  }
  Value mask(Value word, uint32_t bits) {
    return arith::AndIOp::create(builder, loc, word, i32(bits));
  }
  SmallVector<Value> maskAll(ArrayRef<Value> words, uint32_t bits) {
    return llvm::map_to_vector(words,
                               [&](Value word) { return mask(word, bits); });
  }
  Value asHalves(ArrayRef<Value> words, VectorType type) {
    auto raw = VectorType::get({static_cast<int64_t>(words.size())},
                               builder.getI32Type());
    return vector::BitCastOp::create(
        builder, loc, type,
        vector::FromElementsOp::create(builder, loc, raw, words));
  }
  Value prmt(Value a, Value b, int64_t selector) {
    return simt::PrmtOp::create(builder, loc, builder.getI32Type(), a, b,
                                selector);
  }

  Value placeInteger(Value word, int64_t pair) {
    if (to.isBF16())
      return prmt(word, i32(0x43434343), pair == 0 ? 0x4140 : 0x4342);
    Value bytes = word;
    if (!isRaised)
      bytes = arith::XOrIOp::create(builder, loc, word, i32(0x80808080));
    return prmt(bytes, i32(to.isF16() ? 0x64646464 : 0),
                pair == 0 ? 0x4140 : 0x4342);
  }

  Value placeFloat(Value word, int64_t pair) {
    if (pair == 0)
      checkNumbers(word);
    if (to.isF16()) {
      Value halves = simt::WidenFloatsOp::create(
          builder, loc, VectorType::get({2}, to), word, pair);
      Value one = vector::BitCastOp::create(
          builder, loc, VectorType::get({1}, builder.getI32Type()), halves);
      return vector::ExtractOp::create(builder, loc, one, 0);
    }
    // The bytes as the upper ones of halves.
    Value upper = prmt(word, i32(0), pair == 0 ? 0x1404 : 0x3424);
    constexpr int shift = 4;
    Value magnitude = arith::ShRUIOp::create(builder, loc, upper, i32(shift));
    magnitude = mask(magnitude, (0x7f00u >> shift) * 0x10001u);
    return arith::OrIOp::create(builder, loc, magnitude,
                                mask(upper, 0x80008000));
  }

  /// 0x7f and 0xff are none.
  void checkNumbers(Value word) {
    Value carries = arith::AddIOp::create(builder, loc, mask(word, 0x7f7f7f7f),
                                          i32(0x01010101));
    Value areNumbers =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              mask(carries, 0x80808080), i32(0));
    simt::AssertOp::create(builder, loc, areNumbers, kNoNumber);
  }

  OpBuilder &builder;
  Location loc;
  Type from, to;
  bool isRaised;
};

struct EntryCastPattern : OpConversionPattern<CastOp> {
  EntryCastPattern(const TypeConverter &converter, MLIRContext *context,
                   const EntryPlans &plans)
      : OpConversionPattern(converter, context, /*benefit=*/2), plans(plans) {}

  LogicalResult
  matchAndRewrite(CastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto lookup = op.getSource().getDefiningOp<LookupVectorsOp>();
    Type from = op.getSource().getType().getElementType();
    Type to = op.getType().getElementType();
    bool isKnown = (from.isSignedInteger(8) && to.isSignedInteger(16)) ||
                   ((from.isSignedInteger(8) || isa<Float8E4M3FNType>(from)) &&
                    (to.isF16() || to.isBF16()));
    if (!lookup || !isKnown)
      return rewriter.notifyMatchFailure(op, "not a cast of entries");
    bool isRaised = plans.lookup(lookup.getCodebook().getType()).isRaised;
    EntryCast cast(rewriter, getNamedLoc(op), from, to, isRaised);
    rewriter.replaceOp(
        op, cast.emit(adaptor.getSource(), getRegisterType(op.getType())));
    return success();
  }

  const EntryPlans &plans;
};

} // namespace

void lowlp::populateEntryCastPattern(const TypeConverter &converter,
                                     RewritePatternSet &patterns,
                                     const EntryPlans &plans) {
  patterns.add<EntryCastPattern>(converter, patterns.getContext(), plans);
}
