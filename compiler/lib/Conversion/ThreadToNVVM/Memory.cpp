//===- Memory.cpp - loads, stores and copies on NVIDIA GPUs ---------------===//
//
// A `simt` address is a pointer and an offset in bytes; the number of a memory
// space of `simt` is the number of its address space in NVPTX. Vectors stay
// whole: the backend makes `ld.global.v4` and the like from them where the
// alignment allows.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lowlp;

/// The array that stands for the dynamic shared memory of every kernel of the
/// module (PTX ISA, "Kernel Function Parameters": `.extern .shared`). Swizzles
/// of tensor copies go by the address and repeat every 1024 bytes.
static LLVM::GlobalOp getSharedArray(ConversionPatternRewriter &rewriter,
                                     gpu::GPUModuleOp module) {
  constexpr StringLiteral name = "lowlp_shared_memory";
  if (auto array = module.lookupSymbol<LLVM::GlobalOp>(name))
    return array;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(module.getBody());
  return LLVM::GlobalOp::create(
      rewriter, module.getLoc(),
      LLVM::LLVMArrayType::get(rewriter.getI8Type(), 0), /*isConstant=*/false,
      LLVM::Linkage::External, name, /*value=*/Attribute(), /*alignment=*/1024,
      static_cast<unsigned>(simt::MemorySpace::Shared));
}

namespace {

struct SharedMemoryLowering : ConvertOpToLLVMPattern<simt::SharedMemoryOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::SharedMemoryOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto module = op->getParentOfType<gpu::GPUModuleOp>();
    Value begin = LLVM::AddressOfOp::create(rewriter, op.getLoc(),
                                            getSharedArray(rewriter, module));
    Value offset = LLVM::ConstantOp::create(
        rewriter, op.getLoc(), rewriter.getI64IntegerAttr(op.getOffset()));
    rewriter.replaceOp(op,
                       getByteAddress(rewriter, op.getLoc(), begin, offset));
    return success();
  }
};

struct MapSharedLowering : ConvertOpToLLVMPattern<simt::MapSharedOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::MapSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    rewriter.replaceOpWithNewOp<NVVM::MapaOp>(op, type, adaptor.getOwn(),
                                              adaptor.getBlock());
    return success();
  }
};

struct OffsetLowering : ConvertOpToLLVMPattern<simt::OffsetOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::OffsetOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op,
                       getByteAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                      adaptor.getOffset()));
    return success();
  }
};

struct LoadLowering : ConvertOpToLLVMPattern<simt::LoadOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(verifyFlat(op, op.getType())))
      return failure();
    Value address = getByteAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                   adaptor.getOffset());
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(), address,
                                              op.getAlign());
    return success();
  }
};

/// The i8 or i16 `value`, made by an integer instruction that LLVM keeps.
///
/// NVPTX has one kind of 32-bit register for integers and floats, and stores a
/// truncated i32 straight from it. Where a float instruction wrote the
/// register, ptxas 13.0 does not store its low byte, as `st.b8` says (PTX ISA,
/// "Operand Size Exceeding Instruction-Type Size"), but converts the float to
/// an integer, with saturation (F2IP.U8.F32). A conversion between integers in
/// front of the store prevents that.
static Value makeInteger(ConversionPatternRewriter &rewriter, Location loc,
                         Value value) {
  Type type = value.getType(), i16 = rewriter.getI16Type();
  Value wide =
      LLVM::ZExtOp::create(rewriter, loc, rewriter.getI32Type(), value);
  auto narrow = LLVM::InlineAsmOp::create(
      rewriter, loc, i16, wide, "cvt.u16.u32 $0, $1;", "=h,r",
      /*has_side_effects=*/false, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  if (type == i16)
    return narrow.getRes();
  return LLVM::TruncOp::create(rewriter, loc, type, narrow.getRes());
}

struct StoreLowering : ConvertOpToLLVMPattern<simt::StoreOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (failed(verifyFlat(op, op.getValue().getType())))
      return failure();
    Value address = getByteAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                   adaptor.getOffset());
    Value value = adaptor.getValue();
    if (value.getType().isInteger(8) || value.getType().isInteger(16))
      value = makeInteger(rewriter, op.getLoc(), value);
    rewriter.replaceOpWithNewOp<LLVM::StoreOp>(op, value, address,
                                               op.getAlign());
    return success();
  }
};

/// Only copies of 16 bytes may pass by the L1 cache (PTX ISA, cp.async.cg).
struct CopyAsyncLowering : ConvertOpToLLVMPattern<simt::CopyAsyncOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value from = getByteAddress(rewriter, loc, adaptor.getSource(),
                                adaptor.getSourceOffset());
    Value to = getByteAddress(rewriter, loc, adaptor.getDestination(),
                              adaptor.getDestinationOffset());
    auto cache = op.getBytes() == 16 ? NVVM::LoadCacheModifierKind::CG
                                     : NVVM::LoadCacheModifierKind::CA;
    NVVM::CpAsyncOp::create(rewriter, loc, to, from,
                            static_cast<uint32_t>(op.getBytes()), cache,
                            /*cpSize=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyAsyncCommitLowering
    : ConvertOpToLLVMPattern<simt::CopyAsyncCommitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyAsyncCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncCommitGroupOp>(op);
    return success();
  }
};

struct CopyAsyncWaitLowering : ConvertOpToLLVMPattern<simt::CopyAsyncWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyAsyncWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(
        op, static_cast<uint32_t>(op.getN()));
    return success();
  }
};

/// A GPU takes the promise for granted.
struct AssertLowering : ConvertOpToLLVMPattern<simt::AssertOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::AssertOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::addSimtTypeConversions(LLVMTypeConverter &converter) {
  converter.addConversion([](simt::PtrType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(),
                                      static_cast<unsigned>(type.getSpace()));
  });
  converter.addConversion([](simt::TensorMapType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  converter.addConversion(
      [](simt::AccumulatorsType type) -> Type { return type.getVector(); });
}

void lowlp::populateSimtMemoryToNVVMPatterns(const LLVMTypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<SharedMemoryLowering, MapSharedLowering, OffsetLowering,
               LoadLowering, StoreLowering, CopyAsyncLowering,
               CopyAsyncCommitLowering, CopyAsyncWaitLowering, AssertLowering>(
      converter);
}
