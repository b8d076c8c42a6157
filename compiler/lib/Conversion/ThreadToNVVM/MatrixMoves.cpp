//===- MatrixMoves.cpp - ldmatrix and stmatrix on NVIDIA GPUs -------------===//
//
// The instructions take one word of each matrix as a register of its own. PTX
// calls rows "row" and `.trans` "col" layout in NVVM.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lowlp;

static NVVM::MMALayout getLayout(bool trans) {
  return trans ? NVVM::MMALayout::col : NVVM::MMALayout::row;
}

namespace {

struct LdMatrixLowering : ConvertOpToLLVMPattern<simt::LdMatrixOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::LdMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getType());
    int32_t count = type.getNumElements();
    Type word = rewriter.getI32Type();
    Type result = count == 1
                      ? word
                      : Type(LLVM::LLVMStructType::getLiteral(
                            getContext(), SmallVector<Type>(count, word)));
    Value address =
        getByteAddress(rewriter, loc, adaptor.getBase(), adaptor.getOffset());
    Value loaded = NVVM::LdMatrixOp::create(
        rewriter, loc, result, address, count, getLayout(op.getTrans()),
        NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
    Value words = LLVM::PoisonOp::create(rewriter, loc, type);
    for (int32_t index = 0; index < count; ++index) {
      Value part = count == 1 ? loaded
                              : LLVM::ExtractValueOp::create(rewriter, loc,
                                                             loaded, index)
                                    .getResult();
      Value position = LLVM::ConstantOp::create(
          rewriter, loc, rewriter.getI32IntegerAttr(index));
      words =
          LLVM::InsertElementOp::create(rewriter, loc, words, part, position);
    }
    rewriter.replaceOp(op, words);
    return success();
  }
};

struct StMatrixLowering : ConvertOpToLLVMPattern<simt::StMatrixOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::StMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getMatrices().getType());
    SmallVector<Value> words;
    for (int32_t index = 0; index < type.getNumElements(); ++index) {
      Value position = LLVM::ConstantOp::create(
          rewriter, loc, rewriter.getI32IntegerAttr(index));
      words.push_back(LLVM::ExtractElementOp::create(
          rewriter, loc, adaptor.getMatrices(), position));
    }
    Value address =
        getByteAddress(rewriter, loc, adaptor.getBase(), adaptor.getOffset());
    NVVM::StMatrixOp::create(rewriter, loc, address, words,
                             getLayout(op.getTrans()),
                             NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
                             NVVM::LdStMatrixEltType::B16);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateSimtMatrixMovesToNVVMPatterns(
    const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LdMatrixLowering, StMatrixLowering>(converter);
}
