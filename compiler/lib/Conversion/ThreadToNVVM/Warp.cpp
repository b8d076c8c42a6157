//===- Warp.cpp - exchange within a warp of an NVIDIA GPU -----------------===//
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct BallotLowering : ConvertOpToLLVMPattern<simt::BallotOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::BallotOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value all = LLVM::ConstantOp::create(rewriter, op.getLoc(),
                                         rewriter.getI32IntegerAttr(-1));
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, op.getType(), all,
                                                  adaptor.getCondition(),
                                                  NVVM::VoteSyncKind::ballot);
    return success();
  }
};

} // namespace

void lowlp::populateSimtWarpToNVVMPatterns(const LLVMTypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<BallotLowering>(converter);
}
