//===- CodebookEntry.cpp - an entry of a codebook in registers ------------===//
#include "CodebookEntry.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

/// The widest access that there is.
static constexpr int64_t kMaxAccessBytes = 16;

Type lowlp::getEntryType(CodebookType codebook) {
  MLIRContext *context = codebook.getContext();
  if (!isPacked(codebook.getElementType()))
    return VectorType::get({codebook.getVectorLength()},
                           codebook.getElementType());
  int64_t bytes = codebook.getEntryBytes();
  if (bytes < 4)
    return IntegerType::get(context, 8 * bytes);
  return VectorType::get({bytes / 4}, IntegerType::get(context, 32));
}

/// What a piece of `bytes` of the entry is loaded as.
static Type getPieceType(CodebookType codebook, int64_t bytes) {
  MLIRContext *context = codebook.getContext();
  if (!isPacked(codebook.getElementType()))
    return VectorType::get({bytes / 2}, codebook.getElementType());
  if (bytes <= 4)
    return IntegerType::get(context, 8 * bytes);
  return VectorType::get({bytes / 4}, IntegerType::get(context, 32));
}

/// The f16 or bf16 of all pieces.
static Value joinHalves(OpBuilder &builder, Location loc, Type entry,
                        ArrayRef<Value> pieces) {
  SmallVector<Value> elements;
  for (Value piece : pieces)
    for (int64_t i = 0; i < cast<VectorType>(piece.getType()).getNumElements();
         ++i)
      elements.push_back(vector::ExtractOp::create(builder, loc, piece, i));
  return vector::FromElementsOp::create(builder, loc, cast<VectorType>(entry),
                                        elements);
}

/// Puts a piece, an integer or a vector of words, to bit `position`.
static void insertBits(OpBuilder &builder, Location loc, PackedBits &bits,
                       int64_t position, Value piece) {
  if (auto vector = dyn_cast<VectorType>(piece.getType())) {
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      bits.insert(position + 32 * i, 32,
                  vector::ExtractOp::create(builder, loc, piece, i));
    return;
  }
  int64_t width = piece.getType().getIntOrFloatBitWidth();
  if (width < 32)
    piece = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), piece);
  bits.insert(position, width, piece);
}

Value lowlp::loadEntry(OpBuilder &builder, Location loc, CodebookType codebook,
                       Value base, Value offset, int64_t alignBytes) {
  Type type = getEntryType(codebook);
  int64_t bytes = codebook.getEntryBytes();
  alignBytes = std::min({alignBytes, bytes, kMaxAccessBytes});
  if (alignBytes == std::min(bytes, kMaxAccessBytes))
    return simt::LoadOp::create(builder, loc, type, base, offset, alignBytes);
  SmallVector<Value> pieces;
  for (int64_t byte = 0; byte < bytes; byte += alignBytes) {
    Value at = arith::AddIOp::create(
        builder, loc, offset,
        arith::ConstantIntOp::create(builder, loc, byte, 64));
    pieces.push_back(simt::LoadOp::create(builder, loc,
                                          getPieceType(codebook, alignBytes),
                                          base, at, alignBytes));
  }
  if (!isPacked(codebook.getElementType()))
    return joinHalves(builder, loc, type, pieces);
  PackedBits bits(builder, loc, 8 * bytes);
  for (auto [i, piece] : llvm::enumerate(pieces))
    insertBits(builder, loc, bits, 8 * alignBytes * static_cast<int64_t>(i),
               piece);
  Value words = bits.getVector();
  if (isa<VectorType>(type))
    return words;
  return arith::TruncIOp::create(
      builder, loc, type, vector::ExtractOp::create(builder, loc, words, 0));
}

Value lowlp::raiseEntry(OpBuilder &builder, Location loc, Value entry) {
  Type type = entry.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto bits = builder.getIntegerAttr(getElementTypeOrSelf(type),
                                     llvm::APInt::getSplat(width, {8, 0x80}));
  TypedAttr constant = bits;
  if (auto vector = dyn_cast<VectorType>(type))
    constant = DenseElementsAttr::get(vector, Attribute(bits));
  return arith::XOrIOp::create(
      builder, loc, entry, arith::ConstantOp::create(builder, loc, constant));
}

Value lowlp::extractEntry(OpBuilder &builder, Location loc,
                          CodebookType codebook, Value registers, int64_t i) {
  Type type = getEntryType(codebook);
  if (!isPacked(codebook.getElementType()))
    return vector::ExtractStridedSliceOp::create(builder, loc, registers, i,
                                                 codebook.getVectorLength(), 1);
  PackedBits bits(builder, loc, registers);
  int64_t first = 8 * i, width = 8 * codebook.getEntryBytes();
  if (!isa<VectorType>(type))
    return arith::TruncIOp::create(builder, loc, type,
                                   bits.extract(first, width));
  SmallVector<Value> words;
  for (int64_t bit = 0; bit < width; bit += 32)
    words.push_back(bits.extract(first + bit, 32));
  return vector::FromElementsOp::create(builder, loc, cast<VectorType>(type),
                                        words);
}

Value lowlp::joinEntries(OpBuilder &builder, Location loc, TileType tile,
                         ArrayRef<Value> entries) {
  if (!isPacked(tile.getElementType()))
    return joinHalves(builder, loc, getRegisterType(tile), entries);
  PackedBits bits(builder, loc, tile.getBitsPerThread());
  int64_t bitsPerEntry =
      tile.getBitsPerThread() / static_cast<int64_t>(entries.size());
  for (auto [i, entry] : llvm::enumerate(entries))
    insertBits(builder, loc, bits, bitsPerEntry * static_cast<int64_t>(i),
               entry);
  return bits.getVector();
}
