//===- Warp.cpp - exchange within each warp -------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWarpThreads = 32;

static gpu::ShuffleMode getMode(ShuffleMode mode) {
  switch (mode) {
  case ShuffleMode::Xor:
    return gpu::ShuffleMode::XOR;
  case ShuffleMode::Up:
    return gpu::ShuffleMode::UP;
  case ShuffleMode::Down:
    return gpu::ShuffleMode::DOWN;
  case ShuffleMode::Idx:
    return gpu::ShuffleMode::IDX;
  }
  llvm_unreachable("unknown mode of shuffle");
}

namespace {

struct WarpShufflePattern : OpConversionPattern<WarpShuffleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpShuffleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Value count = arith::ConstantIndexOp::create(rewriter, loc, kWarpThreads);
    // Read without a sign, so that a negative number is beyond too.
    Value exists = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, adaptor.getLane(), count);
    simt::AssertOp::create(rewriter, loc, exists,
                           "a lane must be from 0 to 31");
    Type i32 = rewriter.getI32Type();
    Value lane =
        arith::IndexCastOp::create(rewriter, loc, i32, adaptor.getLane());
    Value width = arith::IndexCastOp::create(rewriter, loc, i32, count);
    TileType tile = op.getType();
    Value words = toWords(rewriter, loc, tile, adaptor.getSource());
    SmallVector<Value> received;
    auto type = cast<VectorType>(words.getType());
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value word = vector::ExtractOp::create(rewriter, loc, words, i);
      received.push_back(gpu::ShuffleOp::create(rewriter, loc, word, lane,
                                                width, getMode(op.getMode()))
                             .getShuffleResult());
    }
    Value result =
        vector::FromElementsOp::create(rewriter, loc, type, received);
    rewriter.replaceOp(op, fromWords(rewriter, loc, tile, result));
    return success();
  }
};

struct BallotPattern : OpConversionPattern<BallotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BallotOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    PackedBits conditions(rewriter, loc, adaptor.getSource());
    SmallVector<Value> words;
    for (int64_t i = 0; i < op.getSource().getType().getNumLocals(); ++i) {
      Value condition = arith::TruncIOp::create(
          rewriter, loc, rewriter.getI1Type(), conditions.extract(i, 1));
      words.push_back(simt::BallotOp::create(rewriter, loc, condition));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, getRegisterType(op.getType()), words);
    return success();
  }
};

} // namespace

void lowlp::populateWarpPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<WarpShufflePattern, BallotPattern>(converter,
                                                  patterns.getContext());
}
