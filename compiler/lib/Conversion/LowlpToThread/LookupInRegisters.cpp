//===- LookupInRegisters.cpp - tables of two entries ----------------------===//
//
// A code of 1 bit chooses between two entries. For the codes at bits q and q +
// 1 of byte i of a word, shifts bring them to the sign bits of byte i, from
// where simt.prmt spreads them over the halves of a mask:
//
//   low = word << (7 - q)       high = word << (6 - q)
//   mask = prmt low, high       sign of byte i of each, twice
//   pair = e0 ^ (mask & (e0 ^ e1))
//
// The shifts serve all four bytes, so a pair costs 2.5 instructions.
//
//===----------------------------------------------------------------------===//
#include "LookupInRegisters.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

bool lowlp::canLookUpInRegisters(SharedType table, TileType codes) {
  Type element = table.getElementType();
  return table.getRank() == 1 && table.getShape()[0] >= 2 &&
         (element.isF16() || element.isBF16()) &&
         codes.getElementType().isUnsignedInteger(1);
}

Value lowlp::lookUpInRegisters(OpBuilder &builder, Location loc, Value base,
                               TileType codes, Value registers,
                               VectorType type) {
  Type i32 = builder.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
  Value both = simt::LoadOp::create(builder, loc, i32, base, zero, /*align=*/4);
  auto repeat = [&](int64_t selector) -> Value {
    return simt::PrmtOp::create(builder, loc, i32, both, both, selector);
  };
  Value first = repeat(0x1010);
  Value difference = arith::XOrIOp::create(builder, loc, first, repeat(0x3232));
  PackedBits bits(builder, loc, registers);
  int64_t numCodes = codes.getNumLocals();
  SmallVector<Value> words;
  for (int64_t code = 0; code < numCodes; code += 2) {
    int64_t bit = code % 8, byte = code / 8 % 4;
    Value word = bits.extract(code / 32 * 32, 32);
    auto shift = [&](int64_t left) -> Value {
      return left ? arith::ShLIOp::create(builder, loc, word, constant(left))
                        .getResult()
                  : word;
    };
    // Nibbles 8 to 15 name the signs of the bytes of both words.
    int64_t selector = (8 + byte) * 0x11 + (12 + byte) * 0x1100;
    Value mask = simt::PrmtOp::create(builder, loc, i32, shift(7 - bit),
                                      shift(6 - bit), selector);
    Value change = arith::AndIOp::create(builder, loc, mask, difference);
    words.push_back(arith::XOrIOp::create(builder, loc, first, change));
  }
  auto wordType = VectorType::get({static_cast<int64_t>(words.size())}, i32);
  Value values = vector::FromElementsOp::create(builder, loc, wordType, words);
  auto whole =
      VectorType::get({2 * wordType.getNumElements()}, type.getElementType());
  values = vector::BitCastOp::create(builder, loc, whole, values);
  if (whole == type)
    return values;
  return vector::ExtractStridedSliceOp::create(
      builder, loc, values, ArrayRef<int64_t>{0}, type.getShape(),
      ArrayRef<int64_t>{1});
}
