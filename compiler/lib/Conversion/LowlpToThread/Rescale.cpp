//===- Rescale.cpp - products with factors that are mostly 1 --------------===//
//
// A warp goes around the products where no thread of it has another factor:
//
//   %any = vector.reduction <or> (factors != 1)
//   scf.if (simt.ballot(%any) != 0) values * factors else values
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct RescalePattern : OpConversionPattern<RescaleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RescaleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Value values = adaptor.getValues(), factors = adaptor.getFactors();
    Value ones = arith::ConstantOp::create(
        rewriter, loc,
        DenseElementsAttr::get(cast<ShapedType>(factors.getType()), 1.0F));
    // Unordered, so that NaN is a factor like all others.
    Value others = arith::CmpFOp::create(
        rewriter, loc, arith::CmpFPredicate::UNE, factors, ones);
    Value any = vector::ReductionOp::create(rewriter, loc,
                                            vector::CombiningKind::OR, others);
    Value votes = simt::BallotOp::create(rewriter, loc, any);
    Value none =
        arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(0));
    Value isScaled = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ne, votes, none);
    Result<std::vector<int64_t>> locals = broadcastLocals(
        op.getFactors().getType().getLayout(), op.getType().getLayout());
    assert(locals && "the op's verifier has found the registers");
    auto scaled = scf::IfOp::create(
        rewriter, loc, isScaled,
        [&](OpBuilder &builder, Location loc) {
          Value repeated = vector::ShuffleOp::create(
              builder, loc, cast<VectorType>(values.getType()), factors,
              factors, ArrayRef<int64_t>(*locals));
          Value product = arith::MulFOp::create(builder, loc, values, repeated);
          scf::YieldOp::create(builder, loc, product);
        },
        [&](OpBuilder &builder, Location loc) {
          scf::YieldOp::create(builder, loc, values);
        });
    rewriter.replaceOp(op, scaled.getResult(0));
    return success();
  }
};

} // namespace

void lowlp::populateRescalePatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<RescalePattern>(converter, patterns.getContext());
}
