//===- ByteWords.cpp - emits indices of tables in bytes -------------------===//
//
// See ByteIndices.h. Where registers end within a group of 16 indices, the
// words that are missing are those that are there: nothing takes what comes of
// them.
//
//===----------------------------------------------------------------------===//
#include "ByteWords.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

static Value i32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(
      builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

static Value prmt(OpBuilder &builder, Location loc, Value a, Value b,
                  int64_t selector) {
  return simt::PrmtOp::create(builder, loc, builder.getI32Type(), a, b,
                              selector);
}

/// What a group of 16 indices has of a slice: two words of 4 bits, else one.
static SmallVector<Value> alignToBytes(OpBuilder &builder, Location loc,
                                       ArrayRef<Value> words, int64_t width,
                                       int64_t group) {
  int64_t first = group * ByteIndices::perGroup * width / 32;
  if (width == 2)
    return {words[first]};
  if (width == 4) {
    Value low = words[first];
    Value high =
        first + 1 < static_cast<int64_t>(words.size()) ? words[first + 1] : low;
    return {prmt(builder, loc, low, high, 0x6420),
            prmt(builder, loc, low, high, 0x7531)};
  }
  // Bytes 0 and 2 have 8 bits each, of which the upper 4 go to the bytes above.
  Value zero = i32(builder, loc, 0);
  Value spread =
      prmt(builder, loc, words[first], zero, group % 2 ? 0x4342 : 0x4140);
  Value up = arith::ShLIOp::create(builder, loc, spread, i32(builder, loc, 4));
  return {arith::OrIOp::create(builder, loc, spread, up)};
}

static Value shift(OpBuilder &builder, Location loc, Value word, int64_t left) {
  if (left > 0)
    return arith::ShLIOp::create(builder, loc, word, i32(builder, loc, left));
  if (left < 0)
    return arith::ShRUIOp::create(builder, loc, word, i32(builder, loc, -left));
  return word;
}

SmallVector<Value> lowlp::emitByteWords(OpBuilder &builder, Location loc,
                                        const ByteIndices &indices,
                                        ArrayRef<Value> slices) {
  SmallVector<SmallVector<Value>> registers;
  for (Value slice : slices) {
    SmallVector<Value> &words = registers.emplace_back();
    int64_t numWords = cast<VectorType>(slice.getType()).getNumElements();
    for (int64_t i = 0; i < numWords; ++i)
      words.push_back(vector::ExtractOp::create(builder, loc, slice, i));
  }
  if (indices.areWhole())
    return registers.front();
  int64_t numGroups =
      llvm::divideCeil(indices.getNumIndices(), ByteIndices::perGroup);
  SmallVector<Value> result(numGroups * ByteIndices::perWord);
  for (int64_t group = 0; group < numGroups; ++group) {
    int64_t place = indices.getFirstBit();
    for (auto [slice, width] : llvm::enumerate(indices.getWidths())) {
      SmallVector<Value> aligned =
          alignToBytes(builder, loc, registers[slice], width, group);
      int64_t mask = (((int64_t(1) << width) - 1) << place) * 0x01010101;
      for (int64_t r = 0; r < ByteIndices::perWord; ++r) {
        Value from = aligned.size() == 2 ? aligned[r / 2] : aligned.front();
        Value moved = shift(builder, loc, from,
                            indices.getShift(static_cast<unsigned>(slice), r));
        Value bits =
            arith::AndIOp::create(builder, loc, moved, i32(builder, loc, mask));
        Value &word = result[group * ByteIndices::perWord + r];
        word = word ? arith::OrIOp::create(builder, loc, bits, word).getResult()
                    : bits;
      }
      place += width;
    }
  }
  return result;
}

Value lowlp::emitByteAddress(OpBuilder &builder, Location loc, Value word,
                             int64_t byte, int64_t target, Value lane) {
  // Bytes 4 to 7 are those of `lane`.
  constexpr int64_t zero = 7;
  int64_t selector = 0;
  for (int64_t i = 3; i >= 0; --i) {
    int64_t other = i < target && lane ? 4 + i : zero;
    selector = selector << 4 | (i == target ? byte : other);
  }
  return prmt(builder, loc, word, lane ? lane : i32(builder, loc, 0), selector);
}
