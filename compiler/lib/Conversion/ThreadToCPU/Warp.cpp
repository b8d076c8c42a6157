//===- Warp.cpp - exchange within a warp as host code ---------------------===//
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// Each lane starts with its own bit; five exchanges, with the lanes that
/// differ in one bit of their number, make the bits of all.
struct BallotLowering : ExecutorPattern<simt::BallotOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::BallotOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    auto i32 = [&](int32_t value) {
      return calls.getI32(rewriter, loc, value);
    };
    Value thread = calls.call(rewriter, op, "lowlpCpuThreadId",
                              rewriter.getI64Type(), i32(0));
    thread = LLVM::TruncOp::create(rewriter, loc, word, thread);
    Value lane = LLVM::AndOp::create(rewriter, loc, thread, i32(31));
    Value bit =
        LLVM::ZExtOp::create(rewriter, loc, word, adaptor.getCondition());
    Value lanes = LLVM::ShlOp::create(rewriter, loc, bit, lane);
    Value site = calls.getSite(rewriter, op);
    Value nowhere = LLVM::ZeroOp::create(
        rewriter, loc, LLVM::LLVMPointerType::get(getContext()));
    for (int32_t distance = 1; distance < 32; distance *= 2) {
      Value others = calls.call(rewriter, op, "lowlpCpuShuffle", word,
                                {i32(LowlpShuffleBfly), lanes, i32(distance),
                                 i32(31), i32(-1), nowhere, site});
      lanes = LLVM::OrOp::create(rewriter, loc, lanes, others);
    }
    rewriter.replaceOp(op, lanes);
    return success();
  }
};

} // namespace

void lowlp::populateWarpToCPUPatterns(const LLVMTypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      ExecutorCalls &calls) {
  patterns.add<BallotLowering>(converter, calls);
}
