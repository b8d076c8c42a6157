//===- Encode.cpp - bit planes of codes -----------------------------------===//
//
// Eight words hold 32 codes, four in each. In every byte the words are a matrix
// of 8 x 8 bits, word k and bit i, which three steps transpose: words that are
// 4, 2 and 1 apart exchange half of their bits.
//
//   k      bits 7654 3210        k      4 apart
//   0      AAAA aaaa             0      bbbb aaaa
//   4      BBBB bbbb      ->     4      BBBB AAAA
//
// A plane that nobody wants takes no part: a step makes of two words only what
// later ones read.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWords = 8;

/// The bits of `kept` in a word, and those of `other` elsewhere.
static Value buildMix(OpBuilder &builder, Location loc, uint32_t kept,
                      Value word, Value other) {
  auto mask = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(bits)));
  };
  Value of = arith::AndIOp::create(builder, loc, word, mask(kept));
  Value rest = arith::AndIOp::create(builder, loc, other, mask(~kept));
  return arith::OrIOp::create(builder, loc, of, rest);
}

/// The first `count` planes of 32 codes.
static SmallVector<Value> buildPlanes(OpBuilder &builder, Location loc,
                                      SmallVector<Value> words, int64_t count) {
  struct Step {
    int64_t apart;
    uint32_t low;
  };
  for (auto [apart, low] :
       {Step{4, 0x0f0f0f0f}, Step{2, 0x33333333}, Step{1, 0x55555555}}) {
    Value shift = arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(apart)));
    for (int64_t k = 0; k < kWords; ++k) {
      if (k & apart)
        continue;
      Value first = words[k], second = words[k + apart];
      // Words from here on lead to planes from `k` with its lower bits cleared.
      auto isRead = [&](int64_t word) { return (word & -apart) < count; };
      if (isRead(k))
        words[k] = buildMix(builder, loc, low, first,
                            arith::ShLIOp::create(builder, loc, second, shift));
      if (isRead(k + apart))
        words[k + apart] =
            buildMix(builder, loc, ~low, second,
                     arith::ShRUIOp::create(builder, loc, first, shift));
    }
  }
  words.truncate(count);
  return words;
}

namespace {

struct EncodePattern : OpConversionPattern<EncodeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(EncodeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType codes = op.getCodes().getType(), planes = op.getPlanes().getType();
    Value registers = toWords(rewriter, loc, codes, adaptor.getCodes());
    int64_t count = planes.getShape()[planes.getLayout().rank() - 2];
    int64_t groups = planes.getNumLocals() / count;
    SmallVector<Value> result;
    for (int64_t group = 0; group < groups; ++group) {
      SmallVector<Value> words;
      for (int64_t k = 0; k < kWords; ++k)
        words.push_back(vector::ExtractOp::create(rewriter, loc, registers,
                                                  group * kWords + k));
      llvm::append_range(result, buildPlanes(rewriter, loc, words, count));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, getRegisterType(planes), result);
    return success();
  }
};

} // namespace

void lowlp::populateEncodePatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<EncodePattern>(converter, patterns.getContext());
}
