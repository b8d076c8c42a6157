//===- ColumnSums.cpp - products with one number --------------------------===//
//
// Where operand a holds one number everywhere, as for sums of b along K, all
// rows of the product are the same. The operands then change places: registers
// of b are, as they are, those of an operand a whose rows are columns of b.
//
//   register of a    0  rows 0-7, k 0-7     2  rows 0-7, k 8-15
//                    1  rows 8-15, k 0-7    3  rows 8-15, k 8-15
//   of b             0, 1  of one step      2, 3  of the next
//
// As all of k count alike, an instruction takes two steps: rows 0 to 7 have
// the sums of the first registers of each, rows 8 to 15 those of the second.
// A lane comes to hold both of column lane / 4, and needs the sums of columns
// 2 (lane % 4) and 2 (lane % 4) + 1.
//
//===----------------------------------------------------------------------===//
#include "ColumnSums.h"

#include "LowlpToThread.h"
#include "RegisterGrid.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWarpThreads = 32;
/// Elements of 16 bits in a register of a or b, and sums in one of c.
static constexpr int64_t kPair = 2;
/// Of a fragment, whose sums take exchanges to come to their threads.
static constexpr size_t kFewestSteps = 4;

ColumnSums::ColumnSums(DotOp op, ArrayRef<DotStep> steps)
    : op(op), loc(getNamedLoc(op)) {
  for (const DotStep &step : steps)
    chainOf[step.c].push_back(step.b);
  for (const auto &[registers, chain] : chainOf)
    if (!llvm::is_contained(chains, chain))
      chains.push_back(chain);
}

bool ColumnSums::isWorthwhile() {
  Type element = op.getB().getType().getElementType();
  if (!op.getA().getDefiningOp<SplatOp>() ||
      !(element.isF16() || element.isBF16()))
    return false;
  return llvm::all_of(chains, [](const Chain &chain) {
    return chain.size() % 2 == 0 && chain.size() >= kFewestSteps;
  });
}

Value ColumnSums::build(OpBuilder &builder, Value a, Value b, Value c) {
  Value number = gatherRegisters(builder, loc, a, {0, 1}, kPair);
  std::vector<Value> sums;
  for (const Chain &chain : chains)
    sums.push_back(distribute(builder, sum(builder, number, b, chain)));
  auto addend = op.getC().getDefiningOp<SplatOp>();
  bool addsToZero = addend && matchPattern(addend.getValue(), m_AnyZeroFloat());
  Value result = c;
  for (const auto &[registers, chain] : chainOf)
    for (int64_t index : registers) {
      Value sum = sums[llvm::find(chains, chain) - chains.begin()];
      if (!addsToZero)
        sum = arith::AddFOp::create(
            builder, loc, gatherRegisters(builder, loc, c, {index}, kPair),
            sum);
      result = vector::InsertStridedSliceOp::create(
          builder, loc, sum, result, ArrayRef<int64_t>{index * kPair},
          ArrayRef<int64_t>{1});
    }
  return result;
}

/// The sum of column lane / 4, times the number.
Value ColumnSums::sum(OpBuilder &builder, Value number, Value b,
                      const Chain &chain) const {
  Value sums = arith::ConstantOp::create(
      builder, loc,
      builder.getZeroAttr(VectorType::get(4, builder.getF32Type())));
  for (size_t k = 0; k < chain.size(); k += 2) {
    SmallVector<int64_t, 4> registers = chain[k];
    llvm::append_range(registers, chain[k + 1]);
    Value rows = gatherRegisters(builder, loc, b, registers, kPair);
    sums = simt::MmaOp::create(builder, loc, sums.getType(), rows, TypeAttr(),
                               number, TypeAttr(), sums);
  }
  return arith::AddFOp::create(
      builder, loc, vector::ExtractOp::create(builder, loc, sums, 0),
      vector::ExtractOp::create(builder, loc, sums, 2));
}

/// What a lane holds in a register of c, out of the sums of column lane / 4.
Value ColumnSums::distribute(OpBuilder &builder, Value sum) const {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  auto shuffle = [&](Value value, Value lane, gpu::ShuffleMode mode) {
    return gpu::ShuffleOp::create(builder, loc, value, lane,
                                  constant(kWarpThreads), mode)
        .getShuffleResult();
  };
  Value thread = arith::IndexCastOp::create(
      builder, loc, builder.getI32Type(),
      gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x));
  // Lane 8 (lane % 4) has the first column, and the fourth one after it the
  // second: it gives that first to the same lane, as one more register for the
  // number of a lane would cost more than one more exchange.
  Value lane = arith::MulIOp::create(
      builder, loc, arith::AndIOp::create(builder, loc, thread, constant(3)),
      constant(8));
  Value second = shuffle(sum, constant(4), gpu::ShuffleMode::XOR);
  return vector::FromElementsOp::create(
      builder, loc, VectorType::get(kPair, sum.getType()),
      ValueRange{shuffle(sum, lane, gpu::ShuffleMode::IDX),
                 shuffle(second, lane, gpu::ShuffleMode::IDX)});
}
