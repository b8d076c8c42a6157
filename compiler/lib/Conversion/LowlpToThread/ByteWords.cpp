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

static Value orShifted(OpBuilder &builder, Location loc, Value word,
                       int64_t left) {
  Value up = arith::ShLIOp::create(builder, loc, word, i32(builder, loc, left));
  return arith::OrIOp::create(builder, loc, word, up);
}

/// Bytes of 8 bits as nibbles of the low halves of four bytes, with other bits
/// above.
static Value spreadNibbles(OpBuilder &builder, Location loc, Value word,
                           int64_t firstByte) {
  // Bytes 4 to 7 are zero.
  int64_t selector = 0x4140 + firstByte * 0x0101;
  return orShifted(builder, loc,
                   prmt(builder, loc, word, i32(builder, loc, 0), selector), 4);
}

/// What a group of 16 indices has of a slice: two words of 4 bits, else one.
static SmallVector<Value> alignSixteen(OpBuilder &builder, Location loc,
                                       ArrayRef<Value> words, int64_t width,
                                       int64_t group) {
  int64_t first = group * width / 2;
  if (width == 2)
    return {words[first]};
  if (width == 1)
    return {spreadNibbles(builder, loc, words[first], group % 2 * 2)};
  Value low = words[first];
  Value high =
      first + 1 < static_cast<int64_t>(words.size()) ? words[first + 1] : low;
  return {prmt(builder, loc, low, high, 0x6420),
          prmt(builder, loc, low, high, 0x7531)};
}

/// What 8 indices have of a slice.
static Value alignEight(OpBuilder &builder, Location loc, Value word,
                        int64_t width) {
  if (width == 4)
    return word;
  if (width == 2)
    return spreadNibbles(builder, loc, word, 0);
  // Bits 4 and 5 go to byte 2, then bits 2 and 3 of it and of byte 0 to the
  // bytes above.
  Value bits =
      arith::AndIOp::create(builder, loc, word, i32(builder, loc, 0xff));
  return orShifted(builder, loc, orShifted(builder, loc, bits, 12), 6);
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
  int64_t wordsOfGroup = indices.getWordsOfGroup();
  SmallVector<Value> result(indices.getNumGroups() * wordsOfGroup);
  for (int64_t group = 0; group < indices.getNumGroups(); ++group) {
    int64_t place = indices.getFirstBit();
    for (auto [slice, width] : llvm::enumerate(indices.getWidths())) {
      ArrayRef<Value> words = registers[slice];
      SmallVector<Value> aligned =
          wordsOfGroup == 4 ? alignSixteen(builder, loc, words, width, group)
                            : SmallVector<Value>{alignEight(
                                  builder, loc, words.front(), width)};
      int64_t mask = (((int64_t(1) << width) - 1) << place) * 0x01010101;
      for (int64_t r = 0; r < wordsOfGroup; ++r) {
        Value from = aligned.size() == 2 ? aligned[r / 2] : aligned.front();
        Value moved = shift(builder, loc, from,
                            indices.getShift(static_cast<unsigned>(slice), r));
        Value bits =
            arith::AndIOp::create(builder, loc, moved, i32(builder, loc, mask));
        Value &word = result[group * wordsOfGroup + r];
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
