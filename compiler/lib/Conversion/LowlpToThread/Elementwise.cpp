//===- Elementwise.cpp - arithmetic, element by element -------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// A block op on tiles that is one arith op on a thread's vector.
template <typename BlockOp, typename ArithOp>
struct ElementwisePattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, ArithOp::create(rewriter, getNamedLoc(op),
                                           getRegisterType(op.getType()),
                                           adaptor.getOperands()));
    return success();
  }
};

struct SplatPattern : OpConversionPattern<SplatOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplatOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, vector::BroadcastOp::create(rewriter, getNamedLoc(op),
                                        getRegisterType(op.getTile().getType()),
                                        adaptor.getValue()));
    return success();
  }
};

/// A choice between two tiles or pointers, which is what canonicalization makes
/// of an scf.if without ops.
struct SelectPattern : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, adaptor.getCondition(),
                                                 adaptor.getTrueValue(),
                                                 adaptor.getFalseValue());
    return success();
  }
};

} // namespace

void lowlp::populateElementwisePatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<ElementwisePattern<AddOp, arith::AddFOp>,
               ElementwisePattern<SubOp, arith::SubFOp>,
               ElementwisePattern<MulOp, arith::MulFOp>,
               ElementwisePattern<DivOp, arith::DivFOp>,
               ElementwisePattern<NegOp, arith::NegFOp>, SplatPattern,
               SelectPattern>(converter, patterns.getContext());
}
