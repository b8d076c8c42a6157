//===- Elementwise.cpp - arithmetic, element by element -------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <type_traits>

using namespace mlir;
using namespace lowlp;

namespace {

/// A block op on tiles that is one arith op on a thread's vector: one for
/// floats, and where integers have it too, one for those with a sign and one
/// for those without.
template <typename BlockOp, typename FloatOp, typename SignedOp = void,
          typename UnsignedOp = SignedOp>
struct ElementwisePattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type element = op.getType().getElementType();
    if constexpr (!std::is_void_v<SignedOp>) {
      if (element.isSignedInteger())
        return replace<SignedOp>(op, adaptor, rewriter);
      if (element.isUnsignedInteger())
        return replace<UnsignedOp>(op, adaptor, rewriter);
    }
    return replace<FloatOp>(op, adaptor, rewriter);
  }

private:
  template <typename ThreadOp>
  static LogicalResult replace(BlockOp op, typename BlockOp::Adaptor adaptor,
                               ConversionPatternRewriter &rewriter) {
    rewriter.replaceOp(op, ThreadOp::create(rewriter, getNamedLoc(op),
                                            getRegisterType(op.getType()),
                                            adaptor.getOperands()));
    return success();
  }
};

struct NegPattern : OpConversionPattern<NegOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(NegOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    VectorType type = getRegisterType(op.getType());
    if (!type.getElementType().isInteger()) {
      rewriter.replaceOp(
          op, arith::NegFOp::create(rewriter, loc, adaptor.getOperand()));
      return success();
    }
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
    rewriter.replaceOp(
        op, arith::SubIOp::create(rewriter, loc, zero, adaptor.getOperand()));
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
  patterns.add<ElementwisePattern<AddOp, arith::AddFOp, arith::AddIOp>,
               ElementwisePattern<SubOp, arith::SubFOp, arith::SubIOp>,
               ElementwisePattern<MulOp, arith::MulFOp, arith::MulIOp>,
               ElementwisePattern<DivOp, arith::DivFOp>,
               ElementwisePattern<MinimumOp, arith::MinimumFOp, arith::MinSIOp,
                                  arith::MinUIOp>,
               ElementwisePattern<MaximumOp, arith::MaximumFOp, arith::MaxSIOp,
                                  arith::MaxUIOp>,
               ElementwisePattern<AbsOp, math::AbsFOp, math::AbsIOp>,
               ElementwisePattern<FmaOp, math::FmaOp>, NegPattern, SplatPattern,
               SelectPattern>(converter, patterns.getContext());
}
