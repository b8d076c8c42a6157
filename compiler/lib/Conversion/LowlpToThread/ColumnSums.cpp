//===- ColumnSums.cpp - products with one number --------------------------===//
//
// Where operand a holds one number everywhere, as for sums of b along K, all
// rows of the product are the same. The operands then change places: registers
// of b are, as they are, those of an operand a whose rows are columns of b.
//
//   register of a    0  rows 0-7, k 0-7     2  rows 0-7, k 8-15
//                    1  rows 8-15, k 0-7    3  rows 8-15, k 8-15
//
// An instruction has 16 rows of a where it has 8 columns of b, so it takes two
// fragments of columns; or, of the last one, two steps. Even and odd steps have
// sums of their own in both cases, so that those of a column do not depend on
// how many others there are.
//
// A lane comes to hold the sum of column lane / 4, and needs those of columns
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
/// Instructions that distributing the sums of a fragment may cost.
static constexpr size_t kLeastSaved = 2;

static Value buildZeros(OpBuilder &builder, Location loc, VectorType type) {
  return arith::ConstantOp::create(builder, loc, type,
                                   builder.getZeroAttr(type));
}

ColumnSums::ColumnSums(DotOp op, ArrayRef<DotStep> steps)
    : op(op), loc(getNamedLoc(op)) {
  for (const DotStep &step : steps)
    chainOf[step.c].push_back(step.b);
  for (const auto &[registers, chain] : chainOf)
    if (!llvm::is_contained(chains, chain))
      chains.push_back(chain);
}

/// Whether a chain is taken together with the one behind it.
bool ColumnSums::isPair(size_t first) const {
  return first + 1 < chains.size() &&
         chains[first].size() == chains[first + 1].size();
}

bool ColumnSums::isWorthwhile() {
  Type element = op.getB().getType().getElementType();
  if (!op.getA().getDefiningOp<SplatOp>() ||
      !(element.isF16() || element.isBF16()))
    return false;
  size_t many = 0, few = 0;
  for (size_t i = 0; i < chains.size(); ++i) {
    many += chains[i].size();
    bool both = isPair(i);
    few += both ? chains[i].size() : (chains[i].size() + 1) / 2;
    if (both)
      many += chains[++i].size();
  }
  return many >= few + kLeastSaved;
}

Value ColumnSums::build(OpBuilder &builder, Value a, Value b, Value c) {
  Value number = gatherRegisters(builder, loc, a, {0, 1}, kPair);
  std::vector<Value> sums;
  for (size_t i = 0; sums.size() < chains.size(); i = sums.size()) {
    if (isPair(i)) {
      auto [first, second] = buildPair(builder, number, b, i);
      sums.push_back(distribute(builder, first));
      sums.push_back(distribute(builder, second));
    } else {
      sums.push_back(
          distribute(builder, buildOne(builder, number, b, chains[i])));
    }
  }
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

/// The product of four registers of b, as an operand a, with the number; a
/// negative one stands for zeros.
Value ColumnSums::multiply(OpBuilder &builder, Value number, Value b,
                           ArrayRef<int64_t> registers, Value addend) const {
  Type element = cast<VectorType>(b.getType()).getElementType();
  auto type =
      VectorType::get(static_cast<int64_t>(registers.size()) * kPair, element);
  Value rows;
  if (llvm::all_of(registers, [](int64_t index) { return index >= 0; })) {
    rows = gatherRegisters(builder, loc, b, registers, kPair);
  } else {
    rows = buildZeros(builder, loc, type);
    for (auto [position, index] : llvm::enumerate(registers))
      if (index >= 0)
        rows = vector::InsertStridedSliceOp::create(
            builder, loc, gatherRegisters(builder, loc, b, {index}, kPair),
            rows, ArrayRef<int64_t>{static_cast<int64_t>(position) * kPair},
            ArrayRef<int64_t>{1});
  }
  return simt::MmaOp::create(builder, loc, addend.getType(), rows, TypeAttr(),
                             number, TypeAttr(), addend);
}

/// Of two fragments of columns, the sums of column lane / 4.
std::pair<Value, Value> ColumnSums::buildPair(OpBuilder &builder, Value number,
                                              Value b, size_t first) const {
  Value zeros =
      buildZeros(builder, loc, VectorType::get(4, builder.getF32Type()));
  Value sums[2] = {zeros, zeros};
  const Chain &one = chains[first], &other = chains[first + 1];
  for (size_t k = 0; k < one.size(); ++k)
    sums[k % 2] =
        multiply(builder, number, b,
                 {one[k][0], other[k][0], one[k][1], other[k][1]}, sums[k % 2]);
  Value all = arith::AddFOp::create(builder, loc, sums[0], sums[1]);
  return {vector::ExtractOp::create(builder, loc, all, 0),
          vector::ExtractOp::create(builder, loc, all, 2)};
}

/// Of one fragment of columns, the sum of column lane / 4.
Value ColumnSums::buildOne(OpBuilder &builder, Value number, Value b,
                           const Chain &chain) const {
  Value sums =
      buildZeros(builder, loc, VectorType::get(4, builder.getF32Type()));
  constexpr int64_t kNone = -1;
  for (size_t k = 0; k < chain.size(); k += 2) {
    bool isLast = k + 1 == chain.size();
    sums = multiply(builder, number, b,
                    {chain[k][0], isLast ? kNone : chain[k + 1][0], chain[k][1],
                     isLast ? kNone : chain[k + 1][1]},
                    sums);
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
  // Lane 8 (lane % 4) has the first column, and the fourth one behind it the
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
