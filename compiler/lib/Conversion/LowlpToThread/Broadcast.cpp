//===- Broadcast.cpp - tiles repeated, and seen with other dimensions -----===//
//
// Both move nothing between threads: a broadcast copies registers as
// `broadcastLocals` of the layout library says, a transposition leaves them as
// they are.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct BroadcastPattern : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getType();
    Result<std::vector<int64_t>> locals =
        broadcastLocals(op.getSource().getType().getLayout(), tile.getLayout());
    assert(locals && "the op's verifier has found the registers");
    if (!isPacked(tile.getElementType())) {
      rewriter.replaceOpWithNewOp<vector::ShuffleOp>(
          op, getRegisterType(tile), adaptor.getSource(), adaptor.getSource(),
          ArrayRef<int64_t>(*locals));
      return success();
    }
    auto width = static_cast<int64_t>(*getElementBits(tile.getElementType()));
    PackedBits source(rewriter, loc, adaptor.getSource());
    PackedBits result(rewriter, loc, tile.getBitsPerThread());
    for (auto [i, local] : llvm::enumerate(*locals))
      result.insert(static_cast<int64_t>(i) * width, width,
                    source.extract(local * width, width));
    rewriter.replaceOp(op, result.getVector());
    return success();
  }
};

struct TransposePattern : OpConversionPattern<TransposeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TransposeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};

} // namespace

void lowlp::populateBroadcastPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<BroadcastPattern, TransposePattern>(converter,
                                                   patterns.getContext());
}
