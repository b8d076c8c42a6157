//===- Broadcast.cpp - tiles repeated, parts, and other dimensions --------===//
//
// All move nothing between threads: a broadcast copies registers as
// `broadcastLocals` of the layout library says, a part takes some, and a
// transposition leaves them as they are.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

/// The registers of a tile whose local element i is element `locals[i]` of
/// `source`.
static Value pick(OpBuilder &builder, Location loc, TileType tile, Value source,
                  ArrayRef<int64_t> locals) {
  if (!isPacked(tile.getElementType()))
    return vector::ShuffleOp::create(builder, loc, getRegisterType(tile),
                                     source, source, locals);
  auto width = static_cast<int64_t>(*getElementBits(tile.getElementType()));
  PackedBits from(builder, loc, source);
  PackedBits to(builder, loc, tile.getBitsPerThread());
  for (auto [i, local] : llvm::enumerate(locals))
    to.insert(static_cast<int64_t>(i) * width, width,
              from.extract(local * width, width));
  return to.getVector();
}

namespace {

struct BroadcastPattern : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileType tile = op.getType();
    Result<std::vector<int64_t>> locals =
        broadcastLocals(op.getSource().getType().getLayout(), tile.getLayout());
    assert(locals && "the op's verifier has found the registers");
    rewriter.replaceOp(op, pick(rewriter, getNamedLoc(op), tile,
                                adaptor.getSource(), *locals));
    return success();
  }
};

struct PartPattern : OpConversionPattern<PartOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PartOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::vector<int64_t> locals = getPartLocals(
        op.getSource().getType().getLayout(), op.getIndices().vec());
    rewriter.replaceOp(op, pick(rewriter, getNamedLoc(op), op.getType(),
                                adaptor.getSource(), locals));
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
  patterns.add<BroadcastPattern, PartPattern, TransposePattern>(
      converter, patterns.getContext());
}
