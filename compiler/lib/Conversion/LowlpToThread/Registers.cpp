//===- Registers.cpp - how a tile lies in a thread's registers ------------===//
//
//   bit of the tile's share:   0        32        64
//   words:                     | word 0 | word 1 | ...      each an i32
//   6-bit element 5:           bits 30 to 35: 2 of word 0, 4 of word 1
//
// All positions are known at compile time, so an extraction is at most two
// shifts, an OR and an AND.
//
//===----------------------------------------------------------------------===//
#include "Codebooks.h"
#include "LowlpToThread.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWordBits = 32;

bool lowlp::isPacked(Type elementType) {
  return getScalarFormat(elementType).has_value();
}

Type lowlp::getThreadElementType(Type elementType) {
  if (isWideInteger(elementType))
    return IntegerType::get(elementType.getContext(),
                            elementType.getIntOrFloatBitWidth());
  return elementType;
}

VectorType lowlp::getRegisterType(TileType tile) {
  if (!isPacked(tile.getElementType()))
    return VectorType::get({tile.getNumLocals()},
                           getThreadElementType(tile.getElementType()));
  int64_t words = llvm::divideCeil(tile.getBitsPerThread(), kWordBits);
  return VectorType::get({words}, IntegerType::get(tile.getContext(), 32));
}

ThreadTypeConverter::ThreadTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](TileType tile) -> Type { return getRegisterType(tile); });
  // One for each 64 rows of a warpgroup.
  addConversion([](AccumulatorsType accumulators,
                   SmallVectorImpl<Type> &parts) {
    VectorType all = getRegisterType(accumulators.getTile());
    int64_t size = accumulators.getLayout().shape()[1] / 2;
    auto part = VectorType::get({size}, all.getElementType());
    parts.append(all.getNumElements() / size,
                 simt::AccumulatorsType::get(accumulators.getContext(), part));
    return std::optional(success());
  });
  addConversion([](PointerType pointer) -> Type {
    return simt::PtrType::get(pointer.getContext(), simt::MemorySpace::Global);
  });
  addConversion([](SharedType shared) -> Type {
    return simt::PtrType::get(shared.getContext(), simt::MemorySpace::Shared);
  });
  addConversion([](MbarriersType barriers) -> Type {
    return simt::PtrType::get(barriers.getContext(), simt::MemorySpace::Shared);
  });
  addConversion([](CodebookType codebook, SmallVectorImpl<Type> &parts) {
    llvm::append_range(parts, getCodebookParts(codebook));
    return std::optional(success());
  });
  addConversion([](GlobalType view) -> Type {
    return simt::PtrType::get(view.getContext(), simt::MemorySpace::Global);
  });
}

Value lowlp::toWords(OpBuilder &builder, Location loc, TileType tile,
                     Value registers) {
  if (isPacked(tile.getElementType()))
    return registers;
  int64_t bits = tile.getBitsPerThread();
  if (bits % 32 != 0) {
    auto padded = VectorType::get({tile.getNumLocals() + 1},
                                  getThreadElementType(tile.getElementType()));
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(padded));
    registers = vector::InsertStridedSliceOp::create(builder, loc, registers,
                                                     zero, ArrayRef<int64_t>{0},
                                                     ArrayRef<int64_t>{1});
  }
  auto words = VectorType::get({(bits + 31) / 32}, builder.getI32Type());
  return vector::BitCastOp::create(builder, loc, words, registers);
}

Value lowlp::fromWords(OpBuilder &builder, Location loc, TileType tile,
                       Value words) {
  if (isPacked(tile.getElementType()))
    return words;
  VectorType type = getRegisterType(tile);
  int64_t bits = tile.getBitsPerThread();
  int64_t numWords = cast<VectorType>(words.getType()).getNumElements();
  auto whole = VectorType::get(
      {numWords * 32 /
       static_cast<int64_t>(*getElementBits(tile.getElementType()))},
      getThreadElementType(tile.getElementType()));
  Value elements = vector::BitCastOp::create(builder, loc, whole, words);
  if (bits % 32 == 0)
    return elements;
  return vector::ExtractStridedSliceOp::create(
      builder, loc, elements, ArrayRef<int64_t>{0}, type.getShape(),
      ArrayRef<int64_t>{1});
}

Location lowlp::getNamedLoc(Operation *op) {
  return NameLoc::get(op->getName().getIdentifier(), op->getLoc());
}

SmallVector<Value> lowlp::unpackIntegers(OpBuilder &builder, Location loc,
                                         TileType tile, Value registers) {
  auto type = cast<IntegerType>(tile.getElementType());
  int64_t width = type.getWidth();
  SmallVector<Value> values;
  if (!isPacked(type)) {
    for (int64_t i = 0; i < tile.getNumLocals(); ++i) {
      Value value = vector::ExtractOp::create(builder, loc, registers, i);
      if (width < kWordBits)
        value = type.isSigned()
                    ? arith::ExtSIOp::create(builder, loc, builder.getI32Type(),
                                             value)
                          .getOut()
                    : arith::ExtUIOp::create(builder, loc, builder.getI32Type(),
                                             value)
                          .getOut();
      values.push_back(value);
    }
    return values;
  }
  PackedBits bits(builder, loc, registers);
  for (int64_t i = 0; i < tile.getNumLocals(); ++i) {
    Value value = bits.extract(i * width, width);
    if (type.isSigned()) {
      Value unused = arith::ConstantOp::create(
          builder, loc, builder.getI32IntegerAttr(kWordBits - width));
      value = arith::ShLIOp::create(builder, loc, value, unused);
      value = arith::ShRSIOp::create(builder, loc, value, unused);
    }
    values.push_back(value);
  }
  return values;
}

Value lowlp::packIntegers(OpBuilder &builder, Location loc, TileType tile,
                          ArrayRef<Value> values) {
  int64_t width = *getElementBits(tile.getElementType());
  if (isPacked(tile.getElementType())) {
    PackedBits bits(builder, loc, tile.getBitsPerThread());
    Value mask = arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr((int32_t(1) << width) - 1));
    for (auto [i, value] : llvm::enumerate(values))
      bits.insert(static_cast<int64_t>(i) * width, width,
                  arith::AndIOp::create(builder, loc, value, mask));
    return bits.getVector();
  }
  VectorType type = getRegisterType(tile);
  SmallVector<Value> elements(values);
  if (width < kWordBits)
    for (Value &element : elements)
      element =
          arith::TruncIOp::create(builder, loc, type.getElementType(), element);
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

PackedBits::PackedBits(OpBuilder &builder, Location loc, int64_t numBits)
    : builder(builder), loc(loc),
      words(llvm::divideCeil(numBits, kWordBits), Value()) {}

PackedBits::PackedBits(OpBuilder &builder, Location loc, Value vector)
    : builder(builder), loc(loc) {
  int64_t numWords = cast<VectorType>(vector.getType()).getNumElements();
  for (int64_t i = 0; i < numWords; ++i)
    words.push_back(vector::ExtractOp::create(builder, loc, vector, i));
}

Value PackedBits::constant(int64_t value) {
  return arith::ConstantOp::create(
      builder, loc,
      builder.getI32IntegerAttr(
          static_cast<int32_t>(static_cast<uint32_t>(value))));
}

Value PackedBits::extract(int64_t position, int64_t width) {
  int64_t word = position / kWordBits, shift = position % kWordBits;
  auto wordAt = [&](int64_t i) { return words[i] ? words[i] : constant(0); };
  Value bits = wordAt(word);
  if (shift)
    bits = arith::ShRUIOp::create(builder, loc, bits, constant(shift));
  if (shift + width > kWordBits) {
    Value high = arith::ShLIOp::create(builder, loc, wordAt(word + 1),
                                       constant(kWordBits - shift));
    bits = arith::OrIOp::create(builder, loc, bits, high);
  }
  // A shift right has already cleared what lies above the end of the word.
  if (shift + width == kWordBits)
    return bits;
  return arith::AndIOp::create(builder, loc, bits,
                               constant((int64_t(1) << width) - 1));
}

Value PackedBits::move(int64_t position, int64_t width, int64_t target) {
  int64_t word = position / kWordBits, shift = position % kWordBits;
  bool isSplit = shift + width > kWordBits;
  if (target == 0 || (isSplit && shift < target)) {
    Value bits = extract(position, width);
    return target ? arith::ShLIOp::create(builder, loc, bits, constant(target))
                        .getResult()
                  : bits;
  }
  Value bits = words[word] ? words[word] : constant(0);
  if (isSplit) {
    Value high = words[word + 1] ? words[word + 1] : constant(0);
    bits = simt::FunnelShiftOp::create(builder, loc, bits, high,
                                       constant(shift - target),
                                       /*right=*/true);
  } else if (shift > target) {
    bits = arith::ShRUIOp::create(builder, loc, bits, constant(shift - target));
  } else if (shift < target) {
    bits = arith::ShLIOp::create(builder, loc, bits, constant(target - shift));
  }
  return arith::AndIOp::create(builder, loc, bits,
                               constant(((int64_t(1) << width) - 1) << target));
}

void PackedBits::insert(int64_t position, int64_t width, Value value) {
  int64_t word = position / kWordBits, shift = position % kWordBits;
  auto merge = [&](int64_t i, Value bits) {
    words[i] =
        words[i] ? arith::OrIOp::create(builder, loc, words[i], bits) : bits;
  };
  merge(word, shift
                  ? arith::ShLIOp::create(builder, loc, value, constant(shift))
                  : value);
  if (shift + width > kWordBits)
    merge(word + 1, arith::ShRUIOp::create(builder, loc, value,
                                           constant(kWordBits - shift)));
}

Value PackedBits::getVector() {
  SmallVector<Value> all;
  for (Value word : words)
    all.push_back(word ? word : constant(0));
  auto type =
      VectorType::get({static_cast<int64_t>(all.size())}, builder.getI32Type());
  return vector::FromElementsOp::create(builder, loc, type, all);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

int64_t lowlp::getNumWorkers(gpu::GPUFuncOp kernel) {
  int64_t numThreads = (*kernel.getKnownBlockSize()).front();
  auto others = kernel->getAttrOfType<IntegerAttr>(kProducerThreadsAttrName);
  return others ? numThreads - others.getInt() : numThreads;
}

void lowlp::emitBarrier(OpBuilder &builder, Location loc) {
  auto kernel = builder.getInsertionBlock()
                    ->getParent()
                    ->getParentOfType<gpu::GPUFuncOp>();
  if (kernel->hasAttr(kProducerThreadsAttrName))
    simt::BarrierOp::create(builder, loc, getNumWorkers(kernel));
  else
    gpu::BarrierOp::create(builder, loc);
}
