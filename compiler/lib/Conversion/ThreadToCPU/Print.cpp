//===- Print.cpp - output as host code ------------------------------------===//
//
// Values pass to the executor as 8 bytes each, in scratch memory on the
// thread's stack: integers widened to i64, floats to f64, as C's `...` has it.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct PrintfLowering : ExecutorPattern<gpu::PrintfOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(gpu::PrintfOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(getContext());
    Type slot = rewriter.getI64Type();
    Value values = makeSlots(rewriter, op, adaptor.getArgs().size());
    for (auto [index, value] : llvm::enumerate(adaptor.getArgs())) {
      Value place = LLVM::GEPOp::create(
          rewriter, loc, pointer, slot, values,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
      LLVM::StoreOp::create(rewriter, loc, widen(rewriter, loc, value), place);
    }
    calls.call(rewriter, op, "lowlpCpuPrint", /*resultType=*/{},
               {calls.getText(rewriter, loc, op.getFormat()), values});
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value widen(OpBuilder &builder, Location loc, Value value) {
    Type type = value.getType();
    if (isa<FloatType>(type))
      return type.isF64() ? value
                          : LLVM::FPExtOp::create(builder, loc,
                                                  builder.getF64Type(), value)
                                .getResult();
    return type.isInteger(64)
               ? value
               : LLVM::SExtOp::create(builder, loc, builder.getI64Type(), value)
                     .getResult();
  }

  /// Memory at the entry of the kernel, so that a loop does not take more.
  static Value makeSlots(ConversionPatternRewriter &rewriter, Operation *op,
                         size_t count) {
    auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&kernel.getBody().front());
    Value size = LLVM::ConstantOp::create(
        rewriter, op->getLoc(),
        rewriter.getI64IntegerAttr(static_cast<int64_t>(count)));
    return LLVM::AllocaOp::create(
        rewriter, op->getLoc(),
        LLVM::LLVMPointerType::get(rewriter.getContext()),
        rewriter.getI64Type(), size);
  }
};

} // namespace

void lowlp::populatePrintToCPUPatterns(const LLVMTypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       ExecutorCalls &calls) {
  patterns.add<PrintfLowering>(converter, calls);
}
