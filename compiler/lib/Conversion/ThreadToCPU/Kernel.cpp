//===- Kernel.cpp - kernels and indices as host code ----------------------===//
//
// A kernel becomes a function with a block of its own in front, which fetches
// the arguments:
//
//   gpu.func @f(%n: i32)     llvm.func @f(%thread: !llvm.ptr, %args: !llvm.ptr)
//                              %place = load args[0]
//                              %n = load %place : i32
//                              br ^body
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct KernelLowering : ExecutorPattern<gpu::GPUFuncOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(gpu::GPUFuncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(getContext());
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(getContext()), {pointer, pointer});
    auto function = LLVM::LLVMFuncOp::create(rewriter, loc, op.getName(), type);
    Block *prologue = function.addEntryBlock(rewriter);
    rewriter.setInsertionPointToStart(prologue);
    const bool tracksOrder = needsThreadOrder(op);
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    for (auto [index, argument] : llvm::enumerate(op.getArgumentTypes())) {
      Type type = getTypeConverter()->convertType(argument);
      if (!type)
        return op.emitOpError("argument ")
               << index
               << " has a type without a form on the CPU: " << argument;
      Value place = LLVM::GEPOp::create(
          rewriter, loc, pointer, pointer, prologue->getArgument(1),
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
      Value address = LLVM::LoadOp::create(rewriter, loc, pointer, place);
      Value value = LLVM::LoadOp::create(rewriter, loc, type, address);
      signature.remapInput(index, value);
    }
    FailureOr<Block *> body = rewriter.convertRegionTypes(
        &op.getBody(), *getTypeConverter(), &signature);
    if (failed(body))
      return rewriter.notifyMatchFailure(op, "a block argument has no type");
    auto branch = LLVM::BrOp::create(rewriter, loc, ValueRange(), *body);
    if (tracksOrder) {
      rewriter.setInsertionPoint(branch);
      calls.call(rewriter, branch, "lowlpCpuTrackOrder", /*resultType=*/{}, {});
    }
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(),
                                function.getBody().end());
    rewriter.eraseOp(op);
    return success();
  }
};

struct ReturnLowering : ConvertOpToLLVMPattern<gpu::ReturnOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(gpu::ReturnOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, adaptor.getOperands());
    return success();
  }
};

/// `gpu.thread_id` and its kin, each of which has a function of the executor.
template <typename IndexOp> struct IndexLowering : ExecutorPattern<IndexOp> {
  IndexLowering(const LLVMTypeConverter &converter, ExecutorCalls &calls,
                StringRef function)
      : ExecutorPattern<IndexOp>(converter, calls), function(function) {}

  LogicalResult
  matchAndRewrite(IndexOp op, typename IndexOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value dimension = this->calls.getI32(
        rewriter, op.getLoc(), static_cast<int32_t>(op.getDimension()));
    rewriter.replaceOp(op, this->calls.call(rewriter, op, function,
                                            rewriter.getI64Type(), dimension));
    return success();
  }

  StringRef function;
};

} // namespace

void lowlp::populateKernelToCPUPatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        ExecutorCalls &calls) {
  patterns.add<KernelLowering>(converter, calls);
  patterns.add<ReturnLowering>(converter);
  patterns.add<IndexLowering<gpu::ThreadIdOp>>(converter, calls,
                                               "lowlpCpuThreadId");
  patterns.add<IndexLowering<gpu::BlockIdOp>>(converter, calls,
                                              "lowlpCpuBlockId");
  patterns.add<IndexLowering<gpu::BlockDimOp>>(converter, calls,
                                               "lowlpCpuBlockDim");
  patterns.add<IndexLowering<gpu::GridDimOp>>(converter, calls,
                                              "lowlpCpuGridDim");
}
