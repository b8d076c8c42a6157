//===- Mma.cpp - matrix multiplication on NVIDIA GPUs ---------------------===//
//
// PTX ISA, "Matrix Fragments for mma.m16n8k16", "k32" and "k256": a lane passes
// its fragment in registers of 32 bits, low elements first:
//
//   vector<8xf16>  e0 e1 | e2 e3 | e4 e5 | e6 e7      4 registers of A
//   vector<4xf16>  e0 e1 | e2 e3                      2 registers of B
//   vector<4xi32>  4 registers of A that hold packed elements
//
// A register is a vector<2xf16>, for all other types an i32: so the NVVM op has
// it.
//
// Both kinds of registers, those that a wide load fills and those of an operand
// A, lie side by side in the register file. Where an operand takes its
// registers from several loads, ptxas moves them together, and does so again
// for each product of the operand. Multiplied by one they come from
// instructions that leave them where they are wanted, once.
//
// Where the product of 8-bit floats is emulated, ptxas makes of it two of
// halves, and adds what they come to, from zeros on, to the accumulators.
// Halves hold these floats exactly, so here they are two products that add to
// the accumulators themselves.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowlp;

static Value getElement(ConversionPatternRewriter &rewriter, Location loc,
                        Value vector, int32_t index) {
  Value position = LLVM::ConstantOp::create(rewriter, loc,
                                            rewriter.getI32IntegerAttr(index));
  return LLVM::ExtractElementOp::create(rewriter, loc, vector, position);
}

/// The registers that `fragment` is passed in.
static SmallVector<Value> getRegisters(ConversionPatternRewriter &rewriter,
                                       Location loc, Value fragment) {
  auto type = cast<VectorType>(fragment.getType());
  int32_t numRegisters =
      type.getNumElements() * type.getElementTypeBitWidth() / 32;
  SmallVector<Value> registers;
  if (type.getElementType().isF16()) {
    for (int32_t index = 0; index < numRegisters; ++index)
      registers.push_back(LLVM::ShuffleVectorOp::create(
          rewriter, loc, fragment, fragment,
          ArrayRef<int32_t>{2 * index, 2 * index + 1}));
    return registers;
  }
  Value words = fragment;
  if (!type.getElementType().isInteger(32))
    words = LLVM::BitcastOp::create(
        rewriter, loc, VectorType::get(numRegisters, rewriter.getI32Type()),
        fragment);
  for (int32_t index = 0; index < numRegisters; ++index)
    registers.push_back(getElement(rewriter, loc, words, index));
  return registers;
}

/// For how many products registers of A that come from several loads of so many
/// elements are worth an instruction each. Copies of those of 8 bytes take
/// registers from loads that could be in flight: with two products attention
/// over 4 channels a code took 1.25 times as long with them.
static int64_t getWorthwhileProducts(int64_t elementsOfLoad) {
  return elementsOfLoad < 8 ? 4 : 2;
}

/// Whether the registers of A come from several wide loads from shared memory,
/// as they were loaded, for so many products that it is worth moving them.
static bool isGatheredOften(simt::MmaOp op) {
  auto shuffle = op.getA().getDefiningOp<vector::ShuffleOp>();
  if (!shuffle || op.getElementTypeOfA().getIntOrFloatBitWidth() != 16)
    return false;
  auto elements = shuffle.getV1().getDefiningOp<vector::FromElementsOp>();
  int64_t products = llvm::range_size(op.getA().getUses());
  return elements && llvm::all_of(elements.getElements(), [&](Value element) {
           auto extract = element.getDefiningOp<vector::ExtractOp>();
           if (!extract)
             return false;
           auto load = extract.getSource().getDefiningOp<simt::LoadOp>();
           auto type = dyn_cast<VectorType>(extract.getSource().getType());
           return load && type && type.getNumElements() > 2 &&
                  products >= getWorthwhileProducts(type.getNumElements()) &&
                  load.getBase().getType().getSpace() ==
                      simt::MemorySpace::Shared;
         });
}

/// Whether A is put together, of halves of other vectors, in another block than
/// that of `op`, such as before a loop, and for several products: moving its
/// registers once is then no more than what each product would move.
static bool isGatheredBefore(simt::MmaOp op) {
  auto shuffle = op.getA().getDefiningOp<vector::ShuffleOp>();
  return shuffle && op.getElementTypeOfA().getIntOrFloatBitWidth() == 16 &&
         shuffle->getBlock() != op->getBlock() &&
         llvm::range_size(op.getA().getUses()) > 1;
}

/// x * 1 + -0 of both numbers of a register, which is x.
static Value multiplyByOne(ConversionPatternRewriter &rewriter, Location loc,
                           Value halves, Type element) {
  Type word = rewriter.getI32Type();
  auto constant = [&](uint32_t bits) -> Value {
    return LLVM::ConstantOp::create(
        rewriter, loc, word,
        rewriter.getI32IntegerAttr(static_cast<int32_t>(bits)));
  };
  bool isF16 = element.isF16();
  Value bits = halves;
  if (halves.getType() != word)
    bits = LLVM::BitcastOp::create(rewriter, loc, word, halves);
  Value made = createInstruction(
      rewriter, loc,
      isF16 ? "fma.rn.f16x2 $0, $1, $2, $3;" : "fma.rn.bf16x2 $0, $1, $2, $3;",
      "=r,r,r,r",
      {bits, constant(isF16 ? 0x3c003c00 : 0x3f803f80), constant(0x80008000)});
  return halves.getType() == word
             ? made
             : LLVM::BitcastOp::create(rewriter, loc, halves.getType(), made)
                   .getResult();
}

static NVVM::MMATypes getMmaType(Type element) {
  return llvm::TypeSwitch<Type, NVVM::MMATypes>(element)
      .Case([](Float16Type) { return NVVM::MMATypes::f16; })
      .Case([](BFloat16Type) { return NVVM::MMATypes::bf16; })
      .Case([](Float8E4M3FNType) { return NVVM::MMATypes::e4m3; })
      .Case([](Float8E5M2Type) { return NVVM::MMATypes::e5m2; })
      .Case([](IntegerType type) {
        if (type.getWidth() == 1)
          return NVVM::MMATypes::b1;
        return type.isSigned() ? NVVM::MMATypes::s8 : NVVM::MMATypes::u8;
      });
}

/// A product of elements of `types` as `nvvm.mma.sync`.
static Value createMma(ConversionPatternRewriter &rewriter, Location loc,
                       Type accumulatorsType, ArrayRef<Value> a,
                       ArrayRef<Value> b, ArrayRef<Value> accumulators,
                       std::array<NVVM::MMATypes, 2> types, int64_t k) {
  std::optional<NVVM::MMAB1Op> bitProduct;
  std::optional<NVVM::MMAIntOverflow> overflow;
  if (types[0] == NVVM::MMATypes::b1)
    bitProduct = NVVM::MMAB1Op::and_popc;
  else if (accumulators.front().getType().isInteger())
    overflow = NVVM::MMAIntOverflow::wrapped;
  return NVVM::MmaOp::create(
      rewriter, loc, accumulatorsType, a, b, accumulators,
      ArrayRef<int64_t>{16, 8, k}, bitProduct, overflow, types,
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
}

/// The product of 8-bit floats as LLVM's intrinsic, since the verifier of MLIR
/// 22's `nvvm.mma.sync` knows the types but refuses them.
static Value callIntrinsic(ConversionPatternRewriter &rewriter, simt::MmaOp op,
                           Type accumulatorsType, ArrayRef<Value> a,
                           ArrayRef<Value> b, ArrayRef<Value> accumulators) {
  std::string name = llvm::formatv(
      "llvm.nvvm.mma.m16n8k32.row.col.f32.{0}.{1}.f32",
      NVVM::stringifyMMATypes(getMmaType(op.getElementTypeOfA())),
      NVVM::stringifyMMATypes(getMmaType(op.getElementTypeOfB())));
  SmallVector<Value> operands(a);
  llvm::append_range(operands, b);
  llvm::append_range(operands, accumulators);
  return LLVM::CallIntrinsicOp::create(rewriter, op.getLoc(), accumulatorsType,
                                       rewriter.getStringAttr(name), operands)
      .getResult(0);
}

/// The halves of a register of four 8-bit floats: of the first two, and of the
/// last.
static std::array<Value, 2> widen(ConversionPatternRewriter &rewriter,
                                  Location loc, Value word, Type element) {
  Type half = VectorType::get(2, rewriter.getF16Type());
  StringAttr name = rewriter.getStringAttr(
      isa<Float8E4M3FNType>(element) ? "llvm.nvvm.e4m3x2.to.f16x2.rn"
                                     : "llvm.nvvm.e5m2x2.to.f16x2.rn");
  Value pairs = LLVM::BitcastOp::create(
      rewriter, loc, VectorType::get(2, rewriter.getI16Type()), word);
  auto widenPair = [&](int32_t index) {
    Value pair = getElement(rewriter, loc, pairs, index);
    return LLVM::CallIntrinsicOp::create(rewriter, loc, half, name, pair)
        .getResult(0);
  };
  return {widenPair(0), widenPair(1)};
}

/// The product of 8-bit floats as two of halves. A lane's four elements of K in
/// a register of A or B are the halves of two registers: of other K than there,
/// but of the same in both operands.
static Value multiplyAsHalves(ConversionPatternRewriter &rewriter,
                              simt::MmaOp op, Type accumulatorsType,
                              ArrayRef<Value> a, ArrayRef<Value> b,
                              SmallVector<Value> accumulators) {
  Location loc = op.getLoc();
  Value results;
  for (size_t step = 0; step < 2; ++step) {
    std::array upper =
        widen(rewriter, loc, a[2 * step], op.getElementTypeOfA());
    std::array lower =
        widen(rewriter, loc, a[2 * step + 1], op.getElementTypeOfA());
    std::array column = widen(rewriter, loc, b[step], op.getElementTypeOfB());
    if (step > 0)
      for (auto [index, sum] : llvm::enumerate(accumulators))
        sum = LLVM::ExtractValueOp::create(rewriter, loc, results, index);
    results =
        createMma(rewriter, loc, accumulatorsType,
                  {upper[0], lower[0], upper[1], lower[1]}, column,
                  accumulators, {NVVM::MMATypes::f16, NVVM::MMATypes::f16}, 16);
  }
  return results;
}

namespace {

struct MmaLowering : ConvertOpToLLVMPattern<simt::MmaOp> {
  MmaLowering(const LLVMTypeConverter &converter, const TargetInfo &target)
      : ConvertOpToLLVMPattern(converter), target(target) {}

  LogicalResult
  matchAndRewrite(simt::MmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto sumType = cast<VectorType>(adaptor.getC().getType());
    SmallVector<Value> accumulators;
    for (int32_t index = 0; index < sumType.getNumElements(); ++index)
      accumulators.push_back(getElement(rewriter, loc, adaptor.getC(), index));
    Type accumulatorsType = LLVM::LLVMStructType::getLiteral(
        getContext(),
        SmallVector<Type>(accumulators.size(), sumType.getElementType()));
    SmallVector<Value> a = getOperandA(op, adaptor, rewriter);
    SmallVector<Value> b = getRegisters(rewriter, loc, adaptor.getB());
    Value results;
    if (!isa<Float8E4M3FNType, Float8E5M2Type>(op.getElementTypeOfA()))
      results = createMma(rewriter, loc, accumulatorsType, a, b, accumulators,
                          {getMmaType(op.getElementTypeOfA()),
                           getMmaType(op.getElementTypeOfB())},
                          op.getK());
    else if (target.getSupport(Feature::MmaF8).isNative())
      results =
          callIntrinsic(rewriter, op, accumulatorsType, a, b, accumulators);
    else
      results =
          multiplyAsHalves(rewriter, op, accumulatorsType, a, b, accumulators);
    Value d = LLVM::PoisonOp::create(rewriter, loc, sumType);
    for (int32_t index = 0; index < sumType.getNumElements(); ++index) {
      Value sum = LLVM::ExtractValueOp::create(rewriter, loc, results, index);
      Value position = LLVM::ConstantOp::create(
          rewriter, loc, rewriter.getI32IntegerAttr(index));
      d = LLVM::InsertElementOp::create(rewriter, loc, d, sum, position);
    }
    rewriter.replaceOp(op, d);
    return success();
  }

private:
  /// The registers of A, moved where that pays.
  static SmallVector<Value> getOperandA(simt::MmaOp op, OpAdaptor adaptor,
                                        ConversionPatternRewriter &rewriter) {
    OpBuilder::InsertionGuard guard(rewriter);
    bool isBefore = isGatheredBefore(op);
    if (isBefore)
      rewriter.setInsertionPointAfterValue(adaptor.getA());
    SmallVector<Value> registers =
        getRegisters(rewriter, op.getLoc(), adaptor.getA());
    if (isBefore || isGatheredOften(op))
      for (Value &part : registers)
        part =
            multiplyByOne(rewriter, op.getLoc(), part, op.getElementTypeOfA());
    return registers;
  }

  const TargetInfo &target;
};

} // namespace

void lowlp::hoistOperandsOfProducts(Operation *root) {
  root->walk([](simt::MmaOp op) {
    auto shuffle = op.getA().getDefiningOp<vector::ShuffleOp>();
    if (!shuffle || op.getElementTypeOfA().getIntOrFloatBitWidth() != 16)
      return;
    auto isLeftAlone = [&](LoopLikeOpInterface loop) {
      return llvm::all_of(shuffle->getOperands(), [&](Value operand) {
        return loop.isDefinedOutsideOfLoop(operand);
      });
    };
    for (auto loop = shuffle->getParentOfType<LoopLikeOpInterface>();
         loop && isLeftAlone(loop);
         loop = shuffle->getParentOfType<LoopLikeOpInterface>())
      loop.moveOutOfLoop(shuffle);
  });
}

void lowlp::populateSimtMmaToNVVMPatterns(const LLVMTypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          const TargetInfo &target) {
  patterns.add<MmaLowering>(converter, target);
}
