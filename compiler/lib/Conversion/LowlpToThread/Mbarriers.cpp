//===- Mbarriers.cpp - mbarriers of a block -------------------------------===//
//
// Mbarrier i lies 8 i bytes past the first. The first thread initialises them
// and arrives where a whole block arrives once; all wait.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "SharedMemory.h"

#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp;

Value lowlp::getMbarrierOffset(OpBuilder &builder, Location loc, Value index) {
  Value bytes = arith::ConstantIndexOp::create(builder, loc, kMbarrierBytes);
  return arith::IndexCastOp::create(
      builder, loc, builder.getI64Type(),
      arith::MulIOp::create(builder, loc, index, bytes));
}

namespace {

struct AllocMbarriersPattern : OpConversionPattern<AllocMbarriersOp> {
  AllocMbarriersPattern(const TypeConverter &converter, MLIRContext *context,
                        const SharedMemoryPlan &plan)
      : OpConversionPattern(converter, context), plan(plan) {}

  LogicalResult
  matchAndRewrite(AllocMbarriersOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Type type = getTypeConverter()->convertType(op.getType());
    Value base = simt::SharedMemoryOp::create(rewriter, loc, type,
                                              plan.offsetBytes.lookup(op));
    {
      OpBuilder::InsertionGuard guard(rewriter);
      enterFirstThread(rewriter, loc, getFirstThread(op));
      for (int64_t i = 0; i < op.getType().getCount(); ++i)
        simt::MbarrierInitOp::create(
            rewriter, loc, base,
            arith::ConstantIntOp::create(rewriter, loc, i * kMbarrierBytes, 64),
            op.getArrivals(), op.getByWarps());
      simt::FenceMbarrierInitOp::create(rewriter, loc);
    }
    rewriter.replaceOp(op, base);
    return success();
  }

  /// The thread that makes the mbarriers: that of a producer that begins
  /// after them, which need not wait for the others then.
  static int64_t getFirstThread(AllocMbarriersOp op) {
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (isa<ProducerWarpOp>(next))
        return getNumWorkers(op->getParentOfType<gpu::GPUFuncOp>());
    return 0;
  }

  const SharedMemoryPlan &plan;
};

struct MbarrierArrivePattern : OpConversionPattern<MbarrierArriveOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    auto alloc = op.getBarriers().getDefiningOp<AllocMbarriersOp>();
    bool byWarp = alloc && alloc.getByWarps();
    auto arrive = simt::MbarrierArriveOp::create(
        rewriter, loc, adaptor.getBarriers(),
        getMbarrierOffset(rewriter, loc, adaptor.getIndex()),
        /*bytes=*/IntegerAttr(), byWarp, byWarp && op.getLoadsEnded());
    if (MulticastAttr multicast = alloc ? MulticastAttr::of(alloc) : nullptr)
      arrive->setDiscardableAttr(MulticastAttr::kName, multicast);
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierExpectBytesPattern : OpConversionPattern<MbarrierExpectBytesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierExpectBytesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      enterFirstThread(rewriter, loc);
      simt::MbarrierArriveOp::create(
          rewriter, loc, adaptor.getBarriers(),
          getMbarrierOffset(rewriter, loc, adaptor.getIndex()),
          op.getBytesAttr(), /*by_warp=*/false, /*loads_ended=*/false);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierWaitPattern : OpConversionPattern<MbarrierWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Type i32 = rewriter.getI32Type();
    Value number =
        arith::IndexCastOp::create(rewriter, loc, i32, adaptor.getParity());
    Value parity = arith::AndIOp::create(
        rewriter, loc, number,
        arith::ConstantIntOp::create(rewriter, loc, 1, 32));
    simt::MbarrierWaitOp::create(
        rewriter, loc, adaptor.getBarriers(),
        getMbarrierOffset(rewriter, loc, adaptor.getIndex()), parity);
    rewriter.eraseOp(op);
    return success();
  }
};

struct FenceAsyncPattern : OpConversionPattern<FenceAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FenceAsyncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::FenceAsyncOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateMbarrierPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns,
                                     const SharedMemoryPlan &plan) {
  MLIRContext *context = patterns.getContext();
  patterns.add<AllocMbarriersPattern>(converter, context, plan);
  patterns.add<MbarrierArrivePattern, MbarrierExpectBytesPattern,
               MbarrierWaitPattern, FenceAsyncPattern>(converter, context);
}
