//===- Async.cpp - asynchronous copies and mbarriers as host code ---------===//
//
// All of it is the executor's: it decides when a copy lands. A kernel that uses
// mbarriers or bulk copies says so before anything else, so that the executor
// tracks what they order from the beginning.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Simt.h"

#include <cstddef>

using namespace mlir;
using namespace lowlp;

namespace {

struct CopyAsyncLowering : ExecutorPattern<simt::CopyAsyncOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::CopyAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuCopyAsync", /*resultType=*/{},
               {adaptor.getSource(), adaptor.getSourceOffset(),
                adaptor.getDestination(), adaptor.getDestinationOffset(),
                calls.getI64(rewriter, op.getLoc(), op.getBytes()),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyAsyncWaitLowering : ExecutorPattern<simt::CopyAsyncWaitOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::CopyAsyncWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuCopyAsyncWait", /*resultType=*/{},
               calls.getI64(rewriter, op.getLoc(), op.getN()));
    rewriter.eraseOp(op);
    return success();
  }
};

/// An op that is a call without operands of its own.
template <typename Op> struct PlainLowering : ExecutorPattern<Op> {
  PlainLowering(const LLVMTypeConverter &converter, ExecutorCalls &calls,
                StringRef function)
      : ExecutorPattern<Op>(converter, calls), function(function) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    this->calls.call(rewriter, op, function, /*resultType=*/{}, {});
    rewriter.eraseOp(op);
    return success();
  }

  StringRef function;
};

struct MbarrierInitLowering : ExecutorPattern<simt::MbarrierInitOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::MbarrierInitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuMbarrierInit", /*resultType=*/{},
               {adaptor.getBase(), adaptor.getOffset(),
                // All lanes of a warp arrive, one by one.
                calls.getI64(rewriter, op.getLoc(),
                             op.getArrivals() * (op.getByWarps() ? 32 : 1)),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierArriveLowering : ExecutorPattern<simt::MbarrierArriveOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::MbarrierArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (MulticastAttr::of(op))
      return rewriter.notifyMatchFailure(op, "there are no clusters");
    calls.call(rewriter, op, "lowlpCpuMbarrierArrive", /*resultType=*/{},
               {adaptor.getBase(), adaptor.getOffset(),
                calls.getI64(rewriter, op.getLoc(), op.getBytes().value_or(0)),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierWaitLowering : ExecutorPattern<simt::MbarrierWaitOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::MbarrierWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuMbarrierWait", /*resultType=*/{},
               {adaptor.getBase(), adaptor.getOffset(), adaptor.getParity(),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkLowering : ExecutorPattern<simt::CopyBulkOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::CopyBulkOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuCopyBulk", /*resultType=*/{},
               {adaptor.getSource(), adaptor.getSourceOffset(),
                adaptor.getDestination(), adaptor.getDestinationOffset(),
                adaptor.getBarrier(), adaptor.getBarrierOffset(),
                calls.getI64(rewriter, op.getLoc(), op.getBytes()),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkToGlobalLowering : ExecutorPattern<simt::CopyBulkToGlobalOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::CopyBulkToGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuCopyBulkToGlobal", /*resultType=*/{},
               {adaptor.getSource(), adaptor.getSourceOffset(),
                adaptor.getDestination(), adaptor.getDestinationOffset(),
                calls.getI64(rewriter, op.getLoc(), op.getBytes()),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkWaitLowering : ExecutorPattern<simt::CopyBulkWaitOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::CopyBulkWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuCopyBulkWait", /*resultType=*/{},
               {calls.getI64(rewriter, op.getLoc(), op.getN()),
                calls.getI32(rewriter, op.getLoc(), op.getRead())});
    rewriter.eraseOp(op);
    return success();
  }
};

/// The operands pass through a `LowlpTensorCopy` on the thread's stack, all of
/// whose fields have 8 bytes. The map says the same and is not read.
struct CopyTensorLowering : ExecutorPattern<simt::CopyTensorOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::CopyTensorOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (MulticastAttr::of(op))
      return rewriter.notifyMatchFailure(op, "there are no clusters");
    Location loc = op.getLoc();
    Value place = makePlace(rewriter, op);
    auto set = [&](size_t byteOffset, Value value) {
      Value at = LLVM::GEPOp::create(
          rewriter, loc, place.getType(), rewriter.getI8Type(), place,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(byteOffset)});
      LLVM::StoreOp::create(rewriter, loc, value, at);
    };
    auto setNumber = [&](size_t byteOffset, int64_t value) {
      set(byteOffset, calls.getI64(rewriter, loc, value));
    };
    auto setAll = [&](size_t byteOffset, ValueRange values) {
      for (auto [index, value] : llvm::enumerate(values))
        set(byteOffset + index * sizeof(int64_t), value);
    };
    set(offsetof(LowlpTensorCopy, source), adaptor.getSource());
    set(offsetof(LowlpTensorCopy, destination), adaptor.getDestination());
    set(offsetof(LowlpTensorCopy, destinationOffset),
        adaptor.getDestinationOffset());
    set(offsetof(LowlpTensorCopy, barrier), adaptor.getBarrier());
    set(offsetof(LowlpTensorCopy, barrierOffset), adaptor.getBarrierOffset());
    setNumber(offsetof(LowlpTensorCopy, rank), op.getBox().size());
    setNumber(offsetof(LowlpTensorCopy, elementBytes), op.getElementBytes());
    setNumber(offsetof(LowlpTensorCopy, swizzleBytes), op.getSwizzle());
    setAll(offsetof(LowlpTensorCopy, extents), adaptor.getExtents());
    setAll(offsetof(LowlpTensorCopy, strideBytes), adaptor.getStrides());
    setAll(offsetof(LowlpTensorCopy, offsets), adaptor.getOffsets());
    for (auto [index, extent] : llvm::enumerate(op.getBox()))
      setNumber(offsetof(LowlpTensorCopy, box) + index * sizeof(int64_t),
                extent);
    calls.call(rewriter, op, "lowlpCpuCopyTensor", /*resultType=*/{},
               {place, calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }

private:
  Value makePlace(ConversionPatternRewriter &rewriter,
                  simt::CopyTensorOp op) const {
    auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&kernel.getBody().front());
    Value size =
        calls.getI32(rewriter, kernel.getLoc(), sizeof(LowlpTensorCopy));
    return LLVM::AllocaOp::create(rewriter, kernel.getLoc(),
                                  LLVM::LLVMPointerType::get(getContext()),
                                  rewriter.getI8Type(), size, /*alignment=*/8);
  }
};

} // namespace

bool lowlp::needsThreadOrder(Operation *kernel) {
  WalkResult result = kernel->walk([](Operation *op) {
    return isa<simt::MbarrierInitOp, simt::FenceAsyncOp, simt::CopyBulkOp,
               simt::CopyBulkToGlobalOp, simt::CopyTensorOp, simt::WgmmaOp,
               simt::WarpgroupBarrierOp>(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

void lowlp::populateAsyncToCPUPatterns(const LLVMTypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       ExecutorCalls &calls) {
  patterns
      .add<CopyAsyncLowering, CopyAsyncWaitLowering, MbarrierInitLowering,
           MbarrierArriveLowering, MbarrierWaitLowering, CopyBulkLowering,
           CopyBulkToGlobalLowering, CopyBulkWaitLowering, CopyTensorLowering>(
          converter, calls);
  // One launch at a time runs on the CPU: nobody waits for another.
  patterns.add<DroppedLowering<simt::WaitForDependenciesOp>,
               DroppedLowering<simt::LaunchDependentsOp>>(converter);
  patterns.add<PlainLowering<simt::CopyAsyncCommitOp>>(
      converter, calls, "lowlpCpuCopyAsyncCommit");
  patterns.add<PlainLowering<simt::FenceMbarrierInitOp>>(
      converter, calls, "lowlpCpuFenceMbarrierInit");
  patterns.add<PlainLowering<simt::FenceAsyncOp>>(converter, calls,
                                                  "lowlpCpuFenceAsync");
  patterns.add<PlainLowering<simt::CopyBulkCommitOp>>(converter, calls,
                                                      "lowlpCpuCopyBulkCommit");
}
