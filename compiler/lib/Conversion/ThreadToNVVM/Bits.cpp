//===- Bits.cpp - LOP3 and PRMT on NVIDIA GPUs ----------------------------===//
//
// Both are one instruction, so they are written as such: what a decode plan
// counts must be what the GPU gets. Without effects, LLVM may still merge and
// drop them.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace lowlp;

/// An instruction on words that only computes.
static Value createInstruction(OpBuilder &builder, Location loc,
                               const Twine &code, StringRef constraints,
                               ValueRange operands) {
  return LLVM::InlineAsmOp::create(
             builder, loc, builder.getI32Type(), operands, code.str(),
             constraints, /*has_side_effects=*/false, /*is_align_stack=*/false,
             LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(builder.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             /*operand_attrs=*/ArrayAttr())
      .getRes();
}

namespace {

struct Lop3Lowering : ConvertOpToLLVMPattern<simt::Lop3Op> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::Lop3Op op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op,
                       createInstruction(rewriter, op.getLoc(),
                                         "lop3.b32 $0, $1, $2, $3, " +
                                             Twine(op.getTable()) + ";",
                                         "=r,r,r,r", adaptor.getOperands()));
    return success();
  }
};

struct PrmtLowering : ConvertOpToLLVMPattern<simt::PrmtOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::PrmtOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, createInstruction(rewriter, op.getLoc(),
                                             "prmt.b32 $0, $1, $2, " +
                                                 Twine(op.getSelector()) + ";",
                                             "=r,r,r", adaptor.getOperands()));
    return success();
  }
};

} // namespace

void lowlp::populateSimtBitsToNVVMPatterns(const LLVMTypeConverter &converter,
                                           RewritePatternSet &patterns) {
  patterns.add<Lop3Lowering, PrmtLowering>(converter, kInstructionBenefit);
}
