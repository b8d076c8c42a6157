//===- Atomics.cpp - atomics, acquire and release as host code ------------===//
//
// Each is one call of the executor, which checks the access as well. Values
// pass through it as the bits of an i32.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp;

/// The operation on a word of `type`, an i32, an f32 or a pair.
static LowlpAtomicOp getAtomicOp(simt::AtomicKind kind, Type type) {
  if (type.isF32())
    return LowlpAtomicAddF32;
  if (auto pair = dyn_cast<VectorType>(type))
    return pair.getElementType().isF16() ? LowlpAtomicAddF16x2
                                         : LowlpAtomicAddBF16x2;
  switch (kind) {
  case simt::AtomicKind::And:
    return LowlpAtomicAnd;
  case simt::AtomicKind::Or:
    return LowlpAtomicOr;
  case simt::AtomicKind::Add:
    return LowlpAtomicAdd;
  case simt::AtomicKind::Exchange:
    return LowlpAtomicExch;
  case simt::AtomicKind::Xor:
    return LowlpAtomicXor;
  case simt::AtomicKind::MinS:
    return LowlpAtomicMinS;
  case simt::AtomicKind::MaxS:
    return LowlpAtomicMaxS;
  case simt::AtomicKind::MinU:
    return LowlpAtomicMinU;
  case simt::AtomicKind::MaxU:
    return LowlpAtomicMaxU;
  }
  llvm_unreachable("unknown kind of atomic");
}

namespace {

struct AtomicRMWLowering : ExecutorPattern<simt::AtomicRMWOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::AtomicRMWOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getValue().getType();
    Type word = rewriter.getI32Type();
    Value value = adaptor.getValue();
    if (type.isF16() || type.isBF16()) {
      Type half = rewriter.getI16Type();
      value = LLVM::BitcastOp::create(rewriter, loc, half, value);
      value = LLVM::ZExtOp::create(rewriter, loc, word, value);
      Value isBF16 = calls.getI32(rewriter, loc, type.isBF16());
      Value old = calls.call(rewriter, op, "lowlpCpuAtomicAdd16", word,
                             {isBF16, adaptor.getBase(), adaptor.getOffset(),
                              value, calls.getSite(rewriter, op)});
      old = LLVM::TruncOp::create(rewriter, loc, half, old);
      rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(op, type, old);
      return success();
    }
    if (type != word)
      value = LLVM::BitcastOp::create(rewriter, loc, word, value);
    Value kind = calls.getI32(rewriter, loc, getAtomicOp(op.getKind(), type));
    Value old = calls.call(rewriter, op, "lowlpCpuAtomic", word,
                           {kind, adaptor.getBase(), adaptor.getOffset(), value,
                            calls.getSite(rewriter, op)});
    if (type != word)
      old = LLVM::BitcastOp::create(rewriter, loc, type, old);
    rewriter.replaceOp(op, old);
    return success();
  }
};

struct AtomicCASLowering : ExecutorPattern<simt::AtomicCASOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::AtomicCASOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, calls.call(rewriter, op, "lowlpCpuAtomicCas", rewriter.getI32Type(),
                       {adaptor.getBase(), adaptor.getOffset(),
                        adaptor.getExpected(), adaptor.getDesired(),
                        calls.getSite(rewriter, op)}));
    return success();
  }
};

struct AcquireLowering : ExecutorPattern<simt::AcquireOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::AcquireOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    calls.call(rewriter, op, "lowlpCpuAwait", /*resultType=*/{},
               {adaptor.getBase(), adaptor.getOffset(), adaptor.getValue(),
                calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

struct ReleaseLowering : ExecutorPattern<simt::ReleaseOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::ReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value kind =
        calls.getI32(rewriter, op.getLoc(),
                     op.getKind() == simt::ReleaseKind::Store ? LowlpAtomicExch
                                                              : LowlpAtomicAdd);
    calls.call(rewriter, op, "lowlpCpuRelease", /*resultType=*/{},
               {kind, adaptor.getBase(), adaptor.getOffset(),
                adaptor.getValue(), calls.getSite(rewriter, op)});
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateAtomicsToCPUPatterns(const LLVMTypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         ExecutorCalls &calls) {
  patterns.add<AtomicRMWLowering, AtomicCASLowering, AcquireLowering,
               ReleaseLowering>(converter, calls);
}
