//===- Mma.cpp - matrix multiplication on NVIDIA GPUs ---------------------===//
//
// PTX ISA, "Matrix Fragments for mma.m16n8k16": a lane passes its fragment in
// registers of 32 bits, two elements each, low half first:
//
//   vector<8xf16>  e0 e1 | e2 e3 | e4 e5 | e6 e7      4 registers of A
//   vector<4xf16>  e0 e1 | e2 e3                      2 registers of B
//
// A register is a vector<2xf16>, but for bf16 an i32: so the NVVM op has it.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lowlp;

/// The registers that `fragment`, a vector of f16 or bf16, is passed in.
static SmallVector<Value> getRegisters(ConversionPatternRewriter &rewriter,
                                       Location loc, Value fragment) {
  auto type = cast<VectorType>(fragment.getType());
  int32_t numRegisters = type.getNumElements() / 2;
  SmallVector<Value> registers;
  if (type.getElementType().isF16()) {
    for (int32_t index = 0; index < numRegisters; ++index)
      registers.push_back(LLVM::ShuffleVectorOp::create(
          rewriter, loc, fragment, fragment,
          ArrayRef<int32_t>{2 * index, 2 * index + 1}));
    return registers;
  }
  auto words = VectorType::get(numRegisters, rewriter.getI32Type());
  Value bits = LLVM::BitcastOp::create(rewriter, loc, words, fragment);
  for (int32_t index = 0; index < numRegisters; ++index) {
    Value position = LLVM::ConstantOp::create(
        rewriter, loc, rewriter.getI32IntegerAttr(index));
    registers.push_back(
        LLVM::ExtractElementOp::create(rewriter, loc, bits, position));
  }
  return registers;
}

namespace {

struct MmaLowering : ConvertOpToLLVMPattern<simt::MmaOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::MmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type f32 = rewriter.getF32Type();
    SmallVector<Value> sums;
    SmallVector<Value> positions;
    for (int32_t index = 0; index < 4; ++index) {
      positions.push_back(LLVM::ConstantOp::create(
          rewriter, loc, rewriter.getI32IntegerAttr(index)));
      sums.push_back(LLVM::ExtractElementOp::create(
          rewriter, loc, adaptor.getC(), positions.back()));
    }
    bool isF16 = cast<VectorType>(op.getA().getType()).getElementType().isF16();
    NVVM::MMATypes type = isF16 ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    Value results = NVVM::MmaOp::create(
        rewriter, loc,
        LLVM::LLVMStructType::getLiteral(getContext(), {f32, f32, f32, f32}),
        getRegisters(rewriter, loc, adaptor.getA()),
        getRegisters(rewriter, loc, adaptor.getB()), sums,
        ArrayRef<int64_t>{16, 8, 16}, /*b1Op=*/std::nullopt,
        /*intOverflow=*/std::nullopt, std::array{type, type},
        std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    Value d = LLVM::PoisonOp::create(rewriter, loc, adaptor.getC().getType());
    for (int64_t index = 0; index < 4; ++index) {
      Value sum = LLVM::ExtractValueOp::create(rewriter, loc, results, index);
      d = LLVM::InsertElementOp::create(rewriter, loc, d, sum,
                                        positions[index]);
    }
    rewriter.replaceOp(op, d);
    return success();
  }
};

} // namespace

void lowlp::populateSimtMmaToNVVMPatterns(const LLVMTypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<MmaLowering>(converter);
}
