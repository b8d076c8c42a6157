//===- Wgmma.cpp - products of warpgroups, as host code -------------------===//
//
// Accumulators in flight are a number that the executor gives; it keeps the
// accumulators.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct WgmmaLowering : ExecutorPattern<simt::WgmmaOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto store = [&](Value value, Value place) {
      LLVM::StoreOp::create(rewriter, loc, value, place,
                            ExecutorCalls::scratchAlignment);
      return place;
    };
    Value a = store(adaptor.getA(), calls.getScratch(rewriter, op, 0));
    Value c = LLVM::ZeroOp::create(rewriter, loc,
                                   LLVM::LLVMPointerType::get(getContext()));
    Value accumulators = calls.getI64(rewriter, loc, 0);
    if (op.getC() && isa<simt::AccumulatorsType>(op.getC().getType()))
      accumulators = adaptor.getC();
    else if (op.getC())
      c = store(adaptor.getC(), calls.getAccumulatorsScratch(rewriter, op));
    LowlpMmaKind kind =
        getMmaKind(op.getElementTypeOfA(), op.getElementTypeOfB(), op.getK());
    rewriter.replaceOp(
        op, calls.call(rewriter, op, "lowlpCpuWgmma", rewriter.getI64Type(),
                       {calls.getI32(rewriter, loc, kind),
                        calls.getI32(rewriter, loc, op.getN()), a,
                        adaptor.getBase(), adaptor.getOffset(),
                        calls.getI64(rewriter, loc, op.getSwizzle()),
                        calls.getI64(rewriter, loc, op.getLeading()),
                        calls.getI64(rewriter, loc, op.getStride()), c,
                        accumulators, calls.getSite(rewriter, op)}));
    return success();
  }
};

/// Registers of the host need no fence; the executor sees that there is one.
struct WgmmaFenceLowering : ExecutorPattern<simt::WgmmaFenceOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaFenceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuWgmmaFence", /*resultType=*/{},
               calls.getSite(rewriter, op));
    rewriter.replaceOp(op, adaptor.getValues());
    return success();
  }
};

struct WgmmaWaitLowering : ExecutorPattern<simt::WgmmaWaitOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value site = calls.getSite(rewriter, op);
    calls.call(rewriter, op, "lowlpCpuWgmmaWait", /*resultType=*/{},
               {calls.getI64(rewriter, loc, op.getN()), site});
    SmallVector<Value> vectors;
    for (auto [pending, accumulators] :
         llvm::zip_equal(adaptor.getPending(), op.getAccumulators())) {
      Value place = calls.getAccumulatorsScratch(rewriter, op);
      calls.call(rewriter, op, "lowlpCpuWgmmaTake", /*resultType=*/{},
                 {pending, place, site});
      vectors.push_back(LLVM::LoadOp::create(rewriter, loc,
                                             accumulators.getType(), place,
                                             ExecutorCalls::scratchAlignment));
    }
    rewriter.replaceOp(op, vectors);
    return success();
  }
};

} // namespace

void lowlp::populateWgmmaToCPUPatterns(const LLVMTypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       ExecutorCalls &calls) {
  patterns.add<WgmmaLowering, WgmmaFenceLowering, WgmmaWaitLowering>(converter,
                                                                     calls);
  patterns.add<SiteCallLowering<simt::WgmmaCommitOp>>(converter, calls,
                                                      "lowlpCpuWgmmaCommit");
}
