//===- Memory.cpp - loads and stores as host code -------------------------===//
//
// A load or store is announced to the executor, which checks it and does not
// return if it must not happen; the access itself stays in compiled code.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp;

/// Announces the access `op` of a value of `type` and returns its address.
static Value checkAccess(ExecutorCalls &calls,
                         ConversionPatternRewriter &rewriter, Operation *op,
                         Type type, Value base, Value offset,
                         int64_t alignBytes, bool isWrite) {
  Location loc = op->getLoc();
  calls.call(
      rewriter, op, "lowlpCpuCheckAccess", /*resultType=*/{},
      {base, offset, calls.getI64(rewriter, loc, simt::getSizeInBytes(type)),
       calls.getI64(rewriter, loc, alignBytes),
       calls.getI32(rewriter, loc, isWrite), calls.getSite(rewriter, op)});
  return getByteAddress(rewriter, loc, base, offset);
}

namespace {

struct SharedMemoryLowering : ExecutorPattern<simt::SharedMemoryOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::SharedMemoryOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value offset = calls.getI64(rewriter, op.getLoc(), op.getOffset());
    Type type = getTypeConverter()->convertType(op.getType());
    rewriter.replaceOp(
        op, calls.call(rewriter, op, "lowlpCpuSharedMemory", type, offset));
    return success();
  }
};

struct OffsetLowering : ConvertOpToLLVMPattern<simt::OffsetOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::OffsetOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op,
                       getByteAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                      adaptor.getOffset()));
    return success();
  }
};

struct LoadLowering : ExecutorPattern<simt::LoadOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(verifyFlat(op, op.getType())))
      return failure();
    Value address =
        checkAccess(calls, rewriter, op, op.getType(), adaptor.getBase(),
                    adaptor.getOffset(), op.getAlign(), /*isWrite=*/false);
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address,
                                              op.getAlign());
    return success();
  }
};

struct StoreLowering : ExecutorPattern<simt::StoreOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = op.getValue().getType();
    if (failed(verifyFlat(op, type)))
      return failure();
    Value address =
        checkAccess(calls, rewriter, op, type, adaptor.getBase(),
                    adaptor.getOffset(), op.getAlign(), /*isWrite=*/true);
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, adaptor.getValue(), address,
                                               op.getAlign());
    return success();
  }
};

struct AssertLowering : ExecutorPattern<simt::AssertOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::AssertOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value holds = LLVM::ZExtOp::create(rewriter, loc, rewriter.getI32Type(),
                                       adaptor.getCondition());
    Value message = calls.getText(rewriter, loc, op.getMessage());
    calls.call(rewriter, op, "lowlpCpuAssert", /*resultType=*/{},
               {holds, message, calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateMemoryToCPUPatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        ExecutorCalls &calls) {
  patterns.add<OffsetLowering>(converter);
  patterns.add<SharedMemoryLowering, LoadLowering, StoreLowering,
               AssertLowering>(converter, calls);
}
