//===- ThreadToLLVM.cpp - what both machine lowerings share ---------------===//
//
// Control flow is lowered in a step of its own: patterns that split blocks and
// patterns that change the types of their arguments do not mix well.
//
//===----------------------------------------------------------------------===//
#include "ThreadToLLVM.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/LoweringOptions.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lowlp;

LowerToLLVMOptions lowlp::getLoweringOptions(MLIRContext *context) {
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  return options;
}

/// Ends blocks at `simt.exit`, and removes what can no longer be reached.
static void lowerExits(Operation *root) {
  IRRewriter rewriter(root->getContext());
  SmallVector<simt::ExitOp> exits;
  root->walk([&](simt::ExitOp exit) { exits.push_back(exit); });
  for (simt::ExitOp exit : exits) {
    Block *block = exit->getBlock();
    rewriter.splitBlock(block, std::next(exit->getIterator()));
    rewriter.setInsertionPointToEnd(block);
    gpu::ReturnOp::create(rewriter, exit.getLoc());
    rewriter.eraseOp(exit);
  }
  if (exits.empty())
    return;
  root->walk([&](gpu::GPUFuncOp kernel) {
    (void)eraseUnreachableBlocks(rewriter, kernel->getRegions());
  });
}

namespace {

/// LLVM has the instruction on every target.
struct FunnelShiftLowering : ConvertOpToLLVMPattern<simt::FunnelShiftOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::FunnelShiftOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value operands[] = {adaptor.getHigh(), adaptor.getLow(),
                        adaptor.getAmount()};
    if (op.getRight())
      rewriter.replaceOpWithNewOp<LLVM::FshrOp>(op, op.getType(), operands);
    else
      rewriter.replaceOpWithNewOp<LLVM::FshlOp>(op, op.getType(), operands);
    return success();
  }
};

/// As what LLVM has on every target; LOP3 of GPUs comes before it.
struct Lop3Expansion : ConvertOpToLLVMPattern<simt::Lop3Op> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::Lop3Op op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getType();
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, type, value);
    };
    Value ones = constant(-1), zero = constant(0);
    // By cases of a, of b, and then of c.
    auto choose = [&](Value condition, Value set, Value clear) -> Value {
      if (set == clear)
        return set;
      Value inverse = LLVM::XOrOp::create(rewriter, loc, condition, ones);
      Value first = LLVM::AndOp::create(rewriter, loc, condition, set);
      Value second = LLVM::AndOp::create(rewriter, loc, inverse, clear);
      return LLVM::OrOp::create(rewriter, loc, first, second);
    };
    auto table = static_cast<unsigned>(op.getTable());
    Value byB[4];
    for (unsigned i = 0; i < 4; ++i)
      byB[i] = choose(adaptor.getC(), table >> (2 * i + 1) & 1 ? ones : zero,
                      table >> (2 * i) & 1 ? ones : zero);
    Value byA[2] = {choose(adaptor.getB(), byB[1], byB[0]),
                    choose(adaptor.getB(), byB[3], byB[2])};
    rewriter.replaceOp(op, choose(adaptor.getA(), byA[1], byA[0]));
    return success();
  }
};

/// As shifts; PRMT of GPUs comes before it.
struct PrmtExpansion : ConvertOpToLLVMPattern<simt::PrmtOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::PrmtOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getType();
    auto constant = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, type, value);
    };
    Value result = constant(0);
    for (unsigned i = 0; i < 4; ++i) {
      auto nibble = static_cast<unsigned>(op.getSelector() >> (4 * i) & 0xf);
      Value source = nibble & 4 ? adaptor.getB() : adaptor.getA();
      // The byte on top, then down, with copies of its sign or with zeros.
      Value top = LLVM::ShlOp::create(rewriter, loc, source,
                                      constant(24 - 8 * (nibble & 3)));
      Value byte = nibble & 8
                       ? LLVM::AShrOp::create(rewriter, loc, top, constant(31))
                             .getResult()
                       : LLVM::LShrOp::create(rewriter, loc, top, constant(24))
                             .getResult();
      if (nibble & 8)
        byte = LLVM::AndOp::create(rewriter, loc, byte, constant(0xff));
      byte = LLVM::ShlOp::create(rewriter, loc, byte, constant(8 * i));
      result = LLVM::OrOp::create(rewriter, loc, result, byte);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// The same by a selector that is not known.
struct SelectBytesExpansion : ConvertOpToLLVMPattern<simt::SelectBytesOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::SelectBytesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type narrow = op.getType(), wide = rewriter.getI64Type();
    auto constant = [&](Type type, int64_t value) -> Value {
      return LLVM::ConstantOp::create(rewriter, loc, type, value);
    };
    auto widen = [&](Value value) -> Value {
      return LLVM::ZExtOp::create(rewriter, loc, wide, value);
    };
    Value high = LLVM::ShlOp::create(rewriter, loc, widen(adaptor.getB()),
                                     constant(wide, 32));
    Value both = LLVM::OrOp::create(rewriter, loc, high, widen(adaptor.getA()));
    Value result = constant(narrow, 0);
    for (int64_t i = 0; i < 4; ++i) {
      // Eight times the number of the byte.
      Value number = LLVM::LShrOp::create(rewriter, loc, adaptor.getSelector(),
                                          constant(narrow, 4 * i));
      number = LLVM::AndOp::create(rewriter, loc, number, constant(narrow, 7));
      number = LLVM::ShlOp::create(rewriter, loc, number, constant(narrow, 3));
      Value byte = LLVM::LShrOp::create(rewriter, loc, both, widen(number));
      byte = LLVM::AndOp::create(rewriter, loc, byte, constant(wide, 0xff));
      byte = LLVM::TruncOp::create(rewriter, loc, narrow, byte);
      byte = LLVM::ShlOp::create(rewriter, loc, byte, constant(narrow, 8 * i));
      result = LLVM::OrOp::create(rewriter, loc, result, byte);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Sign, exponent and mantissa where a half has them, which is the value times
/// 2^-8, subnormals included; GPUs that convert come before it.
struct WidenFloatsExpansion : ConvertOpToLLVMPattern<simt::WidenFloatsOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WidenFloatsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type word = rewriter.getI32Type();
    auto constant = [&](uint32_t value) -> Value {
      return LLVM::ConstantOp::create(
          rewriter, loc, word,
          rewriter.getI32IntegerAttr(static_cast<int32_t>(value)));
    };
    // The bytes as the upper ones of halves.
    Value upper =
        simt::PrmtOp::create(rewriter, loc, word, adaptor.getWord(),
                             constant(0), op.getHalf() == 0 ? 0x1404 : 0x3424);
    Value magnitude = LLVM::LShrOp::create(rewriter, loc, upper, constant(1));
    magnitude =
        LLVM::AndOp::create(rewriter, loc, magnitude, constant(0x3f803f80));
    Value sign =
        LLVM::AndOp::create(rewriter, loc, upper, constant(0x80008000));
    Value bits = LLVM::OrOp::create(rewriter, loc, magnitude, sign);
    Type type = op.getType();
    Value halves = LLVM::BitcastOp::create(rewriter, loc, type, bits);
    Value factor = LLVM::ConstantOp::create(
        rewriter, loc, type,
        DenseElementsAttr::get(cast<ShapedType>(type),
                               rewriter.getF16FloatAttr(256)));
    rewriter.replaceOpWithNewOp<LLVM::FMulOp>(op, halves, factor);
    return success();
  }
};

} // namespace

LogicalResult lowlp::verifyVectorSizes(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto vector = dyn_cast<VectorType>(type);
      if (!vector || vector.getNumElements() <= simt::kMaxElementsPerThread)
        continue;
      op->emitOpError("gives each thread a vector of ")
          << vector.getNumElements() << " elements; at most "
          << simt::kMaxElementsPerThread << " are allowed";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Appends the ops of `scf` in `root` in the order in which they are lowered:
/// from the last to the first of a block, and outer ones before inner ones. A
/// pattern splits its block, which moves all ops after it, so that thousands
/// of ops side by side would take time with the square of their number; and in
/// the conversion driver, which remembers each op moved, gigabytes. The pattern
/// of a loop expects bodies of one block.
static void collectStructured(Operation *root,
                              SmallVectorImpl<Operation *> &structured) {
  for (Region &region : llvm::reverse(root->getRegions()))
    for (Block &block : llvm::reverse(region))
      for (Operation &op : llvm::reverse(block)) {
        if (isa<scf::SCFDialect>(op.getDialect()) &&
            !op.hasTrait<OpTrait::IsTerminator>())
          structured.push_back(&op);
        collectStructured(&op, structured);
      }
}

LogicalResult lowlp::lowerStructuredControlFlow(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  populateSCFToControlFlowConversionPatterns(patterns);
  FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  SmallVector<Operation *> structured;
  collectStructured(root, structured);
  PatternRewriter rewriter(root->getContext());
  for (Operation *op : structured) {
    rewriter.setInsertionPoint(op);
    if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp,
             scf::ExecuteRegionOp>(op) ||
        failed(applicator.matchAndRewrite(op, rewriter)))
      return op->emitError("failed to legalize operation '")
             << op->getName() << "'";
  }
  lowerExits(root);
  return success();
}

void lowlp::populateThreadToLLVMPatterns(const LLVMTypeConverter &converter,
                                         RewritePatternSet &patterns) {
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns,
                                       /*approximateLog1p=*/false,
                                       kIntrinsicBenefit);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  patterns.add<FunnelShiftLowering, Lop3Expansion, PrmtExpansion,
               SelectBytesExpansion, WidenFloatsExpansion>(converter);
}

Value lowlp::getByteAddress(OpBuilder &builder, Location loc, Value base,
                            Value offset) {
  return LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI8Type(),
                             base, ArrayRef<LLVM::GEPArg>{offset});
}

LogicalResult lowlp::verifyFlat(Operation *op, Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || (vector.getRank() == 1 && !vector.isScalable()))
    return success();
  return op->emitOpError("value in memory must be a scalar or a vector of rank "
                         "1 and fixed length, but is ")
         << type;
}
