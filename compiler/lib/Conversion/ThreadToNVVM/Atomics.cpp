//===- Atomics.cpp - atomics, acquire and release on NVIDIA GPUs ----------===//
//
// All at the scope of the GPU, which LLVM calls `device`. A wait is a loop:
//
//   ^wait:
//     %word = llvm.load atomic acquire %address
//     llvm.cond_br (%word == %value), ^behind, ^wait
//
// LLVM has no atomic add for pairs of 16-bit floats; that is inline assembly.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace lowlp;

static constexpr StringLiteral kDevice = "device";
static constexpr unsigned kWordBytes = 4;

static LLVM::AtomicBinOp getAtomicOp(simt::AtomicKind kind, Type type) {
  switch (kind) {
  case simt::AtomicKind::And:
    return LLVM::AtomicBinOp::_and;
  case simt::AtomicKind::Or:
    return LLVM::AtomicBinOp::_or;
  case simt::AtomicKind::Add:
    return type.isInteger() ? LLVM::AtomicBinOp::add : LLVM::AtomicBinOp::fadd;
  case simt::AtomicKind::Exchange:
    return LLVM::AtomicBinOp::xchg;
  case simt::AtomicKind::Xor:
    return LLVM::AtomicBinOp::_xor;
  case simt::AtomicKind::MinS:
    return LLVM::AtomicBinOp::min;
  case simt::AtomicKind::MaxS:
    return LLVM::AtomicBinOp::max;
  case simt::AtomicKind::MinU:
    return LLVM::AtomicBinOp::umin;
  case simt::AtomicKind::MaxU:
    return LLVM::AtomicBinOp::umax;
  }
  llvm_unreachable("unknown kind of atomic");
}

namespace {

struct AtomicRMWLowering : ConvertOpToLLVMPattern<simt::AtomicRMWOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::AtomicRMWOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = getByteAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                   adaptor.getOffset());
    Type type = op.getValue().getType();
    if (auto pair = dyn_cast<VectorType>(type)) {
      addPair(op, pair, address, adaptor.getValue(), rewriter);
      return success();
    }
    rewriter.replaceOpWithNewOp<LLVM::AtomicRMWOp>(
        op, getAtomicOp(op.getKind(), type), address, adaptor.getValue(),
        LLVM::AtomicOrdering::monotonic, kDevice,
        static_cast<unsigned>(simt::getSizeInBytes(type)));
    return success();
  }

  /// PTX ISA, "atom.add.noftz.f16x2"; `noftz` must be written.
  static void addPair(simt::AtomicRMWOp op, VectorType type, Value address,
                      Value value, ConversionPatternRewriter &rewriter) {
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    bool isShared =
        op.getBase().getType().getSpace() == simt::MemorySpace::Shared;
    std::string code = std::string("atom.relaxed.gpu.") +
                       (isShared ? "shared" : "global") + ".add.noftz." +
                       (type.getElementType().isF16() ? "f16x2" : "bf16x2") +
                       " $0, [$1], $2;";
    Value bits = LLVM::BitcastOp::create(rewriter, loc, word, value);
    auto old = LLVM::InlineAsmOp::create(
        rewriter, loc, word, ValueRange{address, bits}, code,
        isShared ? "=r,r,r,~{memory}" : "=r,l,r,~{memory}",
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
    rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(op, type, old.getRes());
  }
};

struct AtomicCASLowering : ConvertOpToLLVMPattern<simt::AtomicCASOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::AtomicCASOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value address = getByteAddress(rewriter, op.getLoc(), adaptor.getBase(),
                                   adaptor.getOffset());
    Value result = LLVM::AtomicCmpXchgOp::create(
        rewriter, op.getLoc(), address, adaptor.getExpected(),
        adaptor.getDesired(), LLVM::AtomicOrdering::monotonic,
        LLVM::AtomicOrdering::monotonic, kDevice, kWordBytes);
    rewriter.replaceOpWithNewOp<LLVM::ExtractValueOp>(op, result,
                                                      ArrayRef<int64_t>{0});
    return success();
  }
};

struct AcquireLowering : ConvertOpToLLVMPattern<simt::AcquireOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::AcquireOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value address =
        getByteAddress(rewriter, loc, adaptor.getBase(), adaptor.getOffset());
    Block *before = op->getBlock();
    Block *behind = rewriter.splitBlock(before, Block::iterator(op));
    Block *wait = rewriter.createBlock(behind);
    Value word = LLVM::LoadOp::create(
        rewriter, loc, rewriter.getI32Type(), address, kWordBytes,
        /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/false,
        /*isInvariantGroup=*/false, LLVM::AtomicOrdering::acquire, kDevice);
    Value isThere = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq,
                                         word, adaptor.getValue());
    LLVM::CondBrOp::create(rewriter, loc, isThere, behind, wait);
    rewriter.setInsertionPointToEnd(before);
    LLVM::BrOp::create(rewriter, loc, ValueRange(), wait);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ReleaseLowering : ConvertOpToLLVMPattern<simt::ReleaseOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::ReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value address =
        getByteAddress(rewriter, loc, adaptor.getBase(), adaptor.getOffset());
    if (op.getKind() == simt::ReleaseKind::Store)
      LLVM::StoreOp::create(rewriter, loc, adaptor.getValue(), address,
                            kWordBytes, /*isVolatile=*/false,
                            /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                            LLVM::AtomicOrdering::release, kDevice);
    else
      addReleasing(address, adaptor.getValue(), loc, rewriter);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// LLVM 22 makes `atom.add` of an atomicrmw that releases, which orders
  /// nothing (docs/adr/0016-an-addition-that-releases-is-written-as-ptx.md).
  static void addReleasing(Value address, Value value, Location loc,
                           ConversionPatternRewriter &rewriter) {
    LLVM::InlineAsmOp::create(
        rewriter, loc, /*res=*/Type(), ValueRange{address, value},
        "red.release.gpu.global.add.u32 [$0], $1;", "l,r,~{memory}",
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
  }
};

} // namespace

void lowlp::populateSimtAtomicsToNVVMPatterns(
    const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<AtomicRMWLowering, AtomicCASLowering, AcquireLowering,
               ReleaseLowering>(converter);
}
