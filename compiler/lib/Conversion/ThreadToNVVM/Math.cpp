//===- Math.cpp - functions of f32 on NVIDIA GPUs -------------------------===//
//
// What has an instruction of its own becomes that; everything else of `math`
// goes by way of LLVM's intrinsics. No library of device code is linked.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// A function of `math` that is one instruction on an f32.
template <typename MathOp>
struct InstructionLowering : ConvertOpToLLVMPattern<MathOp> {
  InstructionLowering(const LLVMTypeConverter &converter, StringRef intrinsic)
      : ConvertOpToLLVMPattern<MathOp>(converter, kInstructionBenefit),
        intrinsic(intrinsic) {}

  LogicalResult
  matchAndRewrite(MathOp op, typename MathOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "has an instruction for f32 only");
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(intrinsic),
        adaptor.getOperands());
    return success();
  }

private:
  StringRef intrinsic;
};

/// `ex2`; an approximate one has 0 in place of results below the normal
/// numbers. For those the assembler adds a comparison and two products.
struct Exp2Lowering : ConvertOpToLLVMPattern<math::Exp2Op> {
  explicit Exp2Lowering(const LLVMTypeConverter &converter)
      : ConvertOpToLLVMPattern(converter, kInstructionBenefit) {}

  LogicalResult
  matchAndRewrite(math::Exp2Op op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "has an instruction for f32 only");
    bool isApproximate =
        arith::bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn);
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(),
        rewriter.getStringAttr(isApproximate ? "llvm.nvvm.ex2.approx.ftz.f32"
                                             : "llvm.nvvm.ex2.approx.f32"),
        adaptor.getOperands());
    return success();
  }
};

} // namespace

void lowlp::populateMathToNVVMPatterns(const LLVMTypeConverter &converter,
                                       RewritePatternSet &patterns) {
  // PTX ISA, "Floating Point Instructions": ex2, lg2 and rsqrt.
  patterns.add<Exp2Lowering>(converter);
  patterns.add<InstructionLowering<math::Log2Op>>(converter,
                                                  "llvm.nvvm.lg2.approx.f");
  patterns.add<InstructionLowering<math::RsqrtOp>>(converter,
                                                   "llvm.nvvm.rsqrt.approx.f");
}
