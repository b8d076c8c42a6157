//===- Wgmma.cpp - products of warpgroups on NVIDIA GPUs ------------------===//
//
// Inline PTX: what the NVVM dialect has of them takes A from shared memory.
// Registers that the hardware changes later must stay what they are for LLVM,
// which knows nothing of it. So every instruction takes them as operands that
// are tied to its results:
//
//   fence    A and accumulators  nothing that writes them comes after it
//   wgmma    accumulators        chains of products are chains of values
//   wait     accumulators        nothing that reads them comes before it
//
// All clobber memory, so that no access moves across. The matrix descriptor
// (PTX ISA, "Matrix Descriptor Format") holds, from bit 0 on,
//
//   14 bits  start / 16      from bit 16: 14 bits leading / 16
//   from bit 32: 14 bits stride / 16    from bit 62: the swizzle
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

static Value getPosition(OpBuilder &builder, Location loc, int64_t index) {
  return LLVM::ConstantOp::create(
      builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(index)));
}

/// What a vector is in registers: f32, or words of whatever else.
static VectorType getRegisters(VectorType type) {
  if (type.getElementType().isF32())
    return type;
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  return VectorType::get(bits / 32, IntegerType::get(type.getContext(), 32));
}

/// Appends the registers of `vector` to `registers`.
static void split(OpBuilder &builder, Location loc, Value vector,
                  SmallVectorImpl<Value> &registers) {
  VectorType type = getRegisters(cast<VectorType>(vector.getType()));
  if (type != vector.getType())
    vector = LLVM::BitcastOp::create(builder, loc, type, vector);
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    registers.push_back(LLVM::ExtractElementOp::create(
        builder, loc, vector, getPosition(builder, loc, i)));
}

/// The vector of `type` whose registers come first in `registers`, which are
/// dropped there.
static Value join(OpBuilder &builder, Location loc, VectorType type,
                  ArrayRef<Value> &registers) {
  VectorType held = getRegisters(type);
  Value vector = LLVM::PoisonOp::create(builder, loc, held);
  for (int64_t i = 0; i < held.getNumElements(); ++i)
    vector = LLVM::InsertElementOp::create(builder, loc, vector, registers[i],
                                           getPosition(builder, loc, i));
  registers = registers.drop_front(held.getNumElements());
  if (held != type)
    vector = LLVM::BitcastOp::create(builder, loc, type, vector);
  return vector;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Writes the instruction `text` at the insertion point. Its results have
/// `types`, and are numbered from 0; its operands follow, of which the last
/// ones, as many as `numTied`, are the results before.
static SmallVector<Value> emit(OpBuilder &builder, Location loc,
                               const Twine &text, ArrayRef<Type> types,
                               ArrayRef<Value> operands, size_t numTied) {
  auto getLetter = [](Type type) {
    return type.isF32() ? "f" : type.isInteger(64) ? "l" : "r";
  };
  std::string constraints;
  for (Type type : types)
    constraints += std::string("=") + getLetter(type) + ",";
  for (Value operand : operands.drop_back(numTied))
    constraints += std::string(getLetter(operand.getType())) + ",";
  for (size_t i = 0; i < numTied; ++i)
    constraints += std::to_string(i) + ",";
  Type result =
      types.empty()
          ? Type()
          : Type(LLVM::LLVMStructType::getLiteral(builder.getContext(), types));
  auto instruction = LLVM::InlineAsmOp::create(
      builder, loc, result, operands, text.str(), constraints + "~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  SmallVector<Value> results;
  for (size_t i = 0; i < types.size(); ++i)
    results.push_back(
        LLVM::ExtractValueOp::create(builder, loc, instruction.getRes(), i));
  return results;
}

/// Writes an instruction that all registers of `vectors` pass through.
static SmallVector<Value> passThrough(OpBuilder &builder, Location loc,
                                      const Twine &text, ValueRange vectors) {
  SmallVector<Value> registers;
  for (Value vector : vectors)
    split(builder, loc, vector, registers);
  SmallVector<Type> types = llvm::map_to_vector(
      registers, [](Value value) { return value.getType(); });
  SmallVector<Value> passed =
      emit(builder, loc, text, types, registers, registers.size());
  ArrayRef<Value> rest = passed;
  return llvm::map_to_vector(vectors, [&](Value vector) {
    return join(builder, loc, cast<VectorType>(vector.getType()), rest);
  });
}

/// "{$0, $1}" for `count` operands from `first` on.
static std::string listOperands(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = first; i < first + count; ++i)
    text += (i == first ? "$" : ", $") + std::to_string(i);
  return text + "}";
}

static StringRef getName(Type element) {
  if (element.isF16())
    return "f16";
  if (element.isBF16())
    return "bf16";
  if (isa<Float8E4M3FNType>(element))
    return "e4m3";
  if (isa<Float8E5M2Type>(element))
    return "e5m2";
  if (element.isInteger(1))
    return "b1";
  return element.isSignedInteger() ? "s8" : "u8";
}

/// An offset in bytes, converted, and the constant that it has beside.
struct Offset {
  Value variable;
  int64_t constant = 0;
};

/// What of `value` is constant, through sums, and products by constants.
static Offset splitConstant(ConversionPatternRewriter &builder, Value value) {
  Location loc = value.getLoc();
  auto cast = value.getDefiningOp<arith::IndexCastOp>();
  if (cast && isa<IndexType>(cast.getIn().getType()) &&
      value.getType().isInteger(64))
    return splitConstant(builder, cast.getIn());
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::MulIOp>(op))
    return {builder.getRemappedValue(value)};
  std::optional<int64_t> constant = getConstantIntValue(op->getOperand(1));
  if (!constant)
    return {builder.getRemappedValue(value)};
  Offset found = splitConstant(builder, op->getOperand(0));
  if (isa<arith::AddIOp>(op)) {
    found.constant += *constant;
    return found;
  }
  if (!found.constant)
    return {builder.getRemappedValue(value)};
  Value factor = LLVM::ConstantOp::create(
      builder, loc,
      builder.getIntegerAttr(found.variable.getType(), *constant));
  found.variable = LLVM::MulOp::create(builder, loc, found.variable, factor);
  found.constant *= *constant;
  return found;
}

/// A descriptor changes along K by the distance alone, so that a product's
/// steps, and the products of a stage, have one address. Its words are put
/// together where LLVM does not see it: it would spread the words of the sum,
/// and the assembler then needs seven instructions for each in place of one.
static Value getDescriptor(ConversionPatternRewriter &builder, simt::WgmmaOp op,
                           Value base, Value offset) {
  Location loc = op.getLoc();
  auto encode = [](int64_t bytes) { return bytes >> 4; };
  int64_t distance = 0;
  Offset parts = splitConstant(builder, op.getOffset());
  if (parts.constant > 0 && parts.constant % 16 == 0) {
    offset = parts.variable;
    distance = encode(parts.constant);
  }
  int64_t mode = op.getSwizzle() == 0 ? 0 : 128 / op.getSwizzle();
  // 32 bytes are 3.
  mode = std::min<int64_t>(mode, 3);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto constant = [&](int64_t value, Type type) -> Value {
    return LLVM::ConstantOp::create(builder, loc,
                                    builder.getIntegerAttr(type, value));
  };
  // Addresses of shared memory have less than 18 bits.
  Value address = LLVM::PtrToIntOp::create(
      builder, loc, i32, getByteAddress(builder, loc, base, offset));
  Value low = LLVM::LShrOp::create(builder, loc, address, constant(4, i32));
  low = LLVM::OrOp::create(builder, loc, low,
                           constant(encode(op.getLeading()) << 16, i32));
  Value high =
      constant(static_cast<int32_t>(encode(op.getStride()) | mode << 30), i32);
  auto pair = LLVM::InlineAsmOp::create(
      builder, loc, i64, ValueRange{low, high}, "mov.b64 $0, {$1, $2};",
      "=l,r,r", /*has_side_effects=*/false, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  if (!distance)
    return pair.getRes();
  return LLVM::AddOp::create(builder, loc, pair.getRes(),
                             constant(distance, i64));
}

namespace {

struct WgmmaLowering : ConvertOpToLLVMPattern<simt::WgmmaOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    VectorType accumulators = op.getD().getType().getVector();
    int64_t numAccumulators = accumulators.getNumElements();
    SmallVector<Value> operands;
    split(rewriter, loc, adaptor.getA(), operands);
    operands.push_back(
        getDescriptor(rewriter, op, adaptor.getBase(), adaptor.getOffset()));
    if (Value c = adaptor.getC())
      split(rewriter, loc, c, operands);
    Type a = op.getElementTypeOfA(), b = op.getElementTypeOfB();
    // Accumulators that do not begin with c are written without being read.
    std::string text = llvm::formatv(
        "{{\n\t.reg .pred accumulate;\n\tsetp.ne.b32 accumulate, {0}, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n{1}k{2}.{3}.{4}.{5}{10} {6}, {7}, "
        "${8}, accumulate{9};\n\t}",
        adaptor.getC() ? 1 : 0, op.getN(), op.getK(),
        accumulators.getElementType().isF32() ? "f32" : "s32", getName(a),
        getName(b), listOperands(0, numAccumulators),
        listOperands(numAccumulators, 4), numAccumulators + 4, getScales(a),
        a.isInteger(1) ? ".and.popc" : "");
    SmallVector<Value> results =
        emit(rewriter, loc, text,
             SmallVector<Type>(numAccumulators, accumulators.getElementType()),
             operands, adaptor.getC() ? numAccumulators : 0);
    ArrayRef<Value> registers = results;
    rewriter.replaceOp(op, join(rewriter, loc, accumulators, registers));
    return success();
  }

private:
  /// What follows: the signs of A and B, and whether B has N innermost.
  static StringRef getScales(Type element) {
    if (isa<IntegerType>(element))
      return "";
    return isa<Float8E4M3FNType, Float8E5M2Type>(element) ? ", 1, 1"
                                                          : ", 1, 1, 0";
  }
};

struct WgmmaFenceLowering : ConvertOpToLLVMPattern<simt::WgmmaFenceOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaFenceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, passThrough(rewriter, op.getLoc(),
                                       "wgmma.fence.sync.aligned;",
                                       adaptor.getValues()));
    return success();
  }
};

struct WgmmaCommitLowering : ConvertOpToLLVMPattern<simt::WgmmaCommitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    passThrough(rewriter, op.getLoc(), "wgmma.commit_group.sync.aligned;", {});
    rewriter.eraseOp(op);
    return success();
  }
};

struct WgmmaWaitLowering : ConvertOpToLLVMPattern<simt::WgmmaWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WgmmaWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, passThrough(rewriter, op.getLoc(),
                                       "wgmma.wait_group.sync.aligned " +
                                           Twine(op.getN()) + ";",
                                       adaptor.getPending()));
    return success();
  }
};

} // namespace

void lowlp::populateSimtWgmmaToNVVMPatterns(const LLVMTypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<WgmmaLowering, WgmmaFenceLowering, WgmmaCommitLowering,
               WgmmaWaitLowering>(converter);
}
