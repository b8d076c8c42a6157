//===- Matrices.cpp - matrix instructions of a warp, as host code ---------===//
//
// Operands and results pass through scratch memory on the thread's stack.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp;

static LowlpMmaKind getIntegerKind(bool isSignedA, bool isSignedB) {
  if (isSignedA)
    return isSignedB ? LowlpMmaM16N8K32S8S8 : LowlpMmaM16N8K32S8U8;
  return isSignedB ? LowlpMmaM16N8K32U8S8 : LowlpMmaM16N8K32U8U8;
}

static LowlpMmaKind getByteFloatKind(bool isE4M3A, bool isE4M3B) {
  if (isE4M3A)
    return isE4M3B ? LowlpMmaM16N8K32E4M3E4M3 : LowlpMmaM16N8K32E4M3E5M2;
  return isE4M3B ? LowlpMmaM16N8K32E5M2E4M3 : LowlpMmaM16N8K32E5M2E5M2;
}

LowlpMmaKind lowlp::getMmaKind(Type a, Type b, int64_t k) {
  if (a.isF16())
    return LowlpMmaM16N8K16F16;
  if (a.isBF16())
    return LowlpMmaM16N8K16BF16;
  if (a.isUnsignedInteger(1))
    return k == 128 ? LowlpMmaM16N8K128B1And : LowlpMmaM16N8K256B1And;
  if (isa<IntegerType>(a))
    return getIntegerKind(a.isSignedInteger(), b.isSignedInteger());
  return getByteFloatKind(isa<Float8E4M3FNType>(a), isa<Float8E4M3FNType>(b));
}

namespace {

struct MmaLowering : ExecutorPattern<simt::MmaOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::MmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LowlpMmaKind kind =
        getMmaKind(op.getElementTypeOfA(), op.getElementTypeOfB(), op.getK());
    SmallVector<Value> operands = {calls.getI32(rewriter, loc, kind)};
    Value fragments[] = {adaptor.getA(), adaptor.getB(), adaptor.getC()};
    for (auto [index, fragment] : llvm::enumerate(fragments)) {
      operands.push_back(calls.getScratch(rewriter, op, index));
      LLVM::StoreOp::create(rewriter, loc, fragment, operands.back());
    }
    Value result = calls.getScratch(rewriter, op, std::size(fragments));
    operands.push_back(result);
    operands.push_back(calls.getSite(rewriter, op));
    calls.call(rewriter, op, "lowlpCpuMma", /*resultType=*/{}, operands);
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, adaptor.getC().getType(),
                                              result);
    return success();
  }
};

/// What both calls take: address, how many matrices, `trans`, and the words.
template <typename MatrixOp>
static SmallVector<Value>
getOperands(ExecutorCalls &calls, ConversionPatternRewriter &rewriter,
            MatrixOp op, typename MatrixOp::Adaptor adaptor) {
  auto type = cast<VectorType>(op.getMatrices().getType());
  return {adaptor.getBase(),
          adaptor.getOffset(),
          calls.getI32(rewriter, op.getLoc(), type.getNumElements()),
          calls.getI32(rewriter, op.getLoc(), op.getTrans()),
          calls.getScratch(rewriter, op, 0),
          calls.getSite(rewriter, op)};
}

struct LdMatrixLowering : ExecutorPattern<simt::LdMatrixOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::LdMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> operands = getOperands(calls, rewriter, op, adaptor);
    calls.call(rewriter, op, "lowlpCpuLoadMatrix", /*resultType=*/{}, operands);
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(
        op, op.getType(), calls.getScratch(rewriter, op, 0));
    return success();
  }
};

struct StMatrixLowering : ExecutorPattern<simt::StMatrixOp> {
  using ExecutorPattern::ExecutorPattern;

  LogicalResult
  matchAndRewrite(simt::StMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> operands = getOperands(calls, rewriter, op, adaptor);
    LLVM::StoreOp::create(rewriter, op.getLoc(), adaptor.getMatrices(),
                          calls.getScratch(rewriter, op, 0));
    calls.call(rewriter, op, "lowlpCpuStoreMatrix", /*resultType=*/{},
               operands);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateMatricesToCPUPatterns(const LLVMTypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          ExecutorCalls &calls) {
  patterns.add<MmaLowering, LdMatrixLowering, StMatrixLowering>(converter,
                                                                calls);
}
