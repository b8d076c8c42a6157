//===- Collectives.cpp - barriers and shuffles, as host code --------------===//
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace lowlp;

static LowlpShuffleMode getShuffleMode(gpu::ShuffleMode mode) {
  switch (mode) {
  case gpu::ShuffleMode::IDX:
    return LowlpShuffleIdx;
  case gpu::ShuffleMode::UP:
    return LowlpShuffleUp;
  case gpu::ShuffleMode::DOWN:
    return LowlpShuffleDown;
  case gpu::ShuffleMode::XOR:
    return LowlpShuffleBfly;
  }
  llvm_unreachable("unknown mode of shuffle");
}

namespace {

struct LeaveBarriersLowering : ExecutorPattern<simt::LeaveBarriersOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::LeaveBarriersOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuLeaveBarriers", /*resultType=*/{}, {});
    rewriter.eraseOp(op);
    return success();
  }
};

/// The first `width` lanes take part. As on NVIDIA GPUs, that is the member
/// mask, and lanes are clamped at width - 1, or at 32 - width going up.
struct ShuffleLowering : ExecutorPattern<gpu::ShuffleOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(gpu::ShuffleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    Type type = op.getValue().getType();
    if (!type.isInteger(32) && !type.isF32())
      return op.emitOpError("value must be i32 or f32 on the CPU, but is ")
             << type;
    Value value = adaptor.getValue();
    if (type.isF32())
      value = LLVM::BitcastOp::create(rewriter, loc, word, value);
    Value width = adaptor.getWidth();
    Value idle = LLVM::SubOp::create(rewriter, loc,
                                     calls.getI32(rewriter, loc, 32), width);
    Value members = LLVM::LShrOp::create(rewriter, loc,
                                         calls.getI32(rewriter, loc, -1), idle);
    Value clamp = idle;
    if (op.getMode() != gpu::ShuffleMode::UP)
      clamp = LLVM::SubOp::create(rewriter, loc, width,
                                  calls.getI32(rewriter, loc, 1));
    Value mode = calls.getI32(rewriter, loc, getShuffleMode(op.getMode()));
    Value place = calls.getScratch(rewriter, op, 0);
    Value result = calls.call(rewriter, op, "lowlpCpuShuffle", word,
                              {mode, value, adaptor.getOffset(), clamp, members,
                               place, calls.getSite(rewriter, op)});
    if (type.isF32())
      result = LLVM::BitcastOp::create(rewriter, loc, type, result);
    Value predicate = LLVM::LoadOp::create(rewriter, loc, word, place);
    Value valid =
        LLVM::TruncOp::create(rewriter, loc, rewriter.getI1Type(), predicate);
    rewriter.replaceOp(op, {result, valid});
    return success();
  }
};

} // namespace

void lowlp::populateCollectivesToCPUPatterns(const LLVMTypeConverter &converter,
                                             RewritePatternSet &patterns,
                                             ExecutorCalls &calls) {
  patterns.add<LeaveBarriersLowering, ShuffleLowering>(converter, calls);
  // The executor knows who has left.
  patterns
      .add<SiteCallLowering<gpu::BarrierOp>, SiteCallLowering<simt::BarrierOp>>(
          converter, calls, "lowlpCpuBarrier");
  patterns.add<SiteCallLowering<simt::WarpgroupBarrierOp>>(
      converter, calls, "lowlpCpuWarpgroupBarrier");
  // These only make a GPU faster.
  patterns.add<DroppedLowering<simt::SetRegistersOp>,
               DroppedLowering<simt::TakeTurnOp>,
               DroppedLowering<simt::GiveTurnOp>>(converter);
}
