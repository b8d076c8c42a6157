//===- Bits.cpp - instructions on words of NVIDIA GPUs --------------------===//
//
// LOP3 and PRMT are one instruction, so they are written as such: what a decode
// plan counts must be what the GPU gets. Without effects, LLVM may still merge
// and drop them.
//
// (x & mask) | bits of vectors of words is one LOP3 too. Of constants ptxas
// makes two, as only one operand of an instruction may be one; here the other
// is in a register.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace lowlp;

Value lowlp::createInstruction(OpBuilder &builder, Location loc,
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

struct SelectBytesLowering : ConvertOpToLLVMPattern<simt::SelectBytesOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::SelectBytesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, createInstruction(rewriter, op.getLoc(), "prmt.b32 $0, $1, $2, $3;",
                              "=r,r,r,r", adaptor.getOperands()));
    return success();
  }
};

struct WidenFloatsLowering : ConvertOpToLLVMPattern<simt::WidenFloatsOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WidenFloatsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value pairs = LLVM::BitcastOp::create(
        rewriter, loc, VectorType::get(2, rewriter.getI16Type()),
        adaptor.getWord());
    Value half = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32Type(),
                                          op.getHalf());
    Value pair = LLVM::ExtractElementOp::create(rewriter, loc, pairs, half);
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(),
        rewriter.getStringAttr("llvm.nvvm.e4m3x2.to.f16x2.rn"), pair);
    return success();
  }
};

/// (x & mask) | bits of vectors of words.
struct MaskedOrLowering : ConvertOpToLLVMPattern<arith::OrIOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(arith::OrIOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    auto masked = op.getLhs().getDefiningOp<arith::AndIOp>();
    if (!type || type.getRank() != 1 ||
        !type.getElementType().isSignlessInteger(32) || !masked ||
        !masked->hasOneUse())
      return rewriter.notifyMatchFailure(op, "not words under masks");
    Value words = rewriter.getRemappedValue(masked.getLhs());
    Value masks = rewriter.getRemappedValue(masked.getRhs());
    if (!words || !masks)
      return rewriter.notifyMatchFailure(op, "operands are not lowered yet");
    Location loc = op.getLoc();
    Value result = LLVM::PoisonOp::create(rewriter, loc, words.getType());
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value at =
          LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32Type(), i);
      auto element = [&](Value vector) -> Value {
        return LLVM::ExtractElementOp::create(rewriter, loc, vector, at);
      };
      Value made = createInstruction(
          rewriter, loc, "lop3.b32 $0, $1, $2, $3, " + Twine(kMaskedOr) + ";",
          "=r,r,r,r",
          {element(words), element(masks), element(adaptor.getRhs())});
      result = LLVM::InsertElementOp::create(rewriter, loc, result, made, at);
    }
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  /// (a & b) | c.
  static constexpr int kMaskedOr = 0xea;
};

} // namespace

void lowlp::populateSimtBitsToNVVMPatterns(const LLVMTypeConverter &converter,
                                           RewritePatternSet &patterns,
                                           const TargetInfo &target) {
  patterns
      .add<Lop3Lowering, PrmtLowering, SelectBytesLowering, MaskedOrLowering>(
          converter, kInstructionBenefit);
  if (target.getSupport(Feature::ConvertF8).isNative())
    patterns.add<WidenFloatsLowering>(converter, kInstructionBenefit);
}
