//===- TableBits.cpp - from the bits of a code to those of an address -----===//
#include "TableBits.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

bool lowlp::hasTableBits(SharedType table) {
  int64_t elementBits = *getElementBits(table.getElementType());
  return elementBits % 8 == 0 && !table.getLayout().swizzle() &&
         llvm::all_of(table.getShape(), llvm::isPowerOf2_64);
}

SmallVector<BitRun> lowlp::getTableBits(SharedType table, int64_t dim) {
  const Layout &addresses = table.getLayout().layout();
  int64_t target = llvm::Log2_64(*getElementBits(table.getElementType()) / 8);
  SmallVector<BitRun> runs;
  for (const Digit &digit : llvm::reverse(addresses.localDigits())) {
    const Mode &mode = addresses.modes()[digit.mode];
    int64_t width = llvm::Log2_64(digit.extent);
    if (mode.dim == dim) {
      BitRun run{static_cast<int64_t>(llvm::Log2_64(mode.stride)), target,
                 width};
      runs.push_back(run);
    }
    target += width;
  }
  return runs;
}

/// The bits of `value` that `mask` says, `left` places further up.
static Value moveBits(OpBuilder &builder, Location loc, Value value,
                      int64_t left, int64_t mask) {
  auto i32 = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(builder, loc, number, 32);
  };
  if (left > 0)
    value = arith::ShLIOp::create(builder, loc, value, i32(left));
  else if (left < 0)
    value = arith::ShRUIOp::create(builder, loc, value, i32(-left));
  return arith::AndIOp::create(builder, loc, value, i32(mask));
}

static Value join(OpBuilder &builder, Location loc, Value all, Value bits) {
  return all ? arith::OrIOp::create(builder, loc, all, bits).getResult() : bits;
}

Value lowlp::moveToAddress(OpBuilder &builder, Location loc, Value value,
                           ArrayRef<BitRun> runs) {
  Value address;
  for (const BitRun &run : runs)
    address = join(
        builder, loc, address,
        moveBits(builder, loc, value, run.target - run.source,
                 llvm::maskTrailingOnes<uint32_t>(run.width) << run.target));
  return address
             ? address
             : arith::ConstantIntOp::create(builder, loc, 0, 32).getResult();
}

Value lowlp::moveFromAddress(OpBuilder &builder, Location loc, Value address,
                             ArrayRef<BitRun> runs) {
  Value index;
  for (const BitRun &run : runs)
    index = join(
        builder, loc, index,
        moveBits(builder, loc, address, run.source - run.target,
                 llvm::maskTrailingOnes<uint32_t>(run.width) << run.source));
  return index ? index
               : arith::ConstantIntOp::create(builder, loc, 0, 32).getResult();
}
