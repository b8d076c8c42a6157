//===- EntryCopies.cpp - storing entries in shared memory -----------------===//
//
// Entries are stored 16 bytes at a time, several copies of small ones, and
// lanes begin at different places of their lines, so that the eight of a phase
// have all banks. Where copies take 16 bytes or more, but not all banks,
// threads side by side that hold entries of several books, which lie in one
// line, have all banks together.
//
//===----------------------------------------------------------------------===//
#include "EntryCopies.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kBanksBytes = 128;

bool EntryCopies::canRepeat() const {
  int64_t bytes = codebook.getEntryBytes();
  return bytes >= 4 && bytes <= kWideBytes && llvm::isPowerOf2_64(bytes);
}

bool EntryCopies::fillsBanks() const {
  return canRepeat() &&
         codebook.getCache().getCopies() * codebook.getEntryBytes() ==
             kBanksBytes;
}

Value EntryCopies::getLine(Value entry, Value book) {
  CodebookCacheAttr cache = codebook.getCache();
  Value line = scale(entry, cache.getLineBytes());
  return book ? add(line, scale(book, cache.getBookBytes())) : line;
}

void EntryCopies::store(Value thread, Value number, Taken taken) {
  if (fillsBanks())
    return storeCopies(thread, taken);
  int64_t bytes = codebook.getEntryBytes();
  if (canStoreWide())
    return storeWide(taken, number,
                     bytes * codebook.getCache().getCopies() / kWideBytes);
  for (int64_t copy = 0; copy < codebook.getCache().getCopies(); ++copy)
    simt::StoreOp::create(builder, loc, taken.entry, shared,
                          toOffset(add(taken.line, i32(copy * bytes))),
                          std::min(bytes, kWideBytes));
}

bool EntryCopies::canStoreWide() const {
  CodebookCacheAttr cache = codebook.getCache();
  bool areAligned =
      cache.getLineBytes() % kWideBytes == 0 &&
      (codebook.getNumBooks() == 1 || cache.getBookBytes() % kWideBytes == 0);
  return areAligned && canRepeat() &&
         codebook.getEntryBytes() * cache.getCopies() >= kWideBytes;
}

void EntryCopies::storeCopies(Value thread, Taken taken) {
  storeWide(taken, thread, kBanksBytes / kWideBytes);
}

void EntryCopies::storeWide(Taken taken, Value number, int64_t places) {
  Value wide = repeat(taken.entry);
  for (int64_t place = 0; place < places; ++place) {
    Value turned = remainder(add(number, i32(place)), places);
    simt::StoreOp::create(builder, loc, wide, shared,
                          toOffset(add(taken.line, scale(turned, kWideBytes))),
                          kWideBytes);
  }
}

Value EntryCopies::repeat(Value entry) {
  int64_t count = kWideBytes / codebook.getEntryBytes();
  if (count == 1)
    return entry;
  auto vector = dyn_cast<VectorType>(entry.getType());
  SmallVector<Value> elements;
  for (int64_t copy = 0; copy < count; ++copy) {
    if (!vector) {
      elements.push_back(entry);
      continue;
    }
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      elements.push_back(vector::ExtractOp::create(builder, loc, entry, i));
  }
  auto type = VectorType::get({static_cast<int64_t>(elements.size())},
                              elements.front().getType());
  return vector::FromElementsOp::create(builder, loc, type, elements);
}

Value EntryCopies::getThread() {
  return arith::IndexCastUIOp::create(
      builder, loc, builder.getI32Type(),
      gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x));
}

Value EntryCopies::i32(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value EntryCopies::add(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value EntryCopies::scale(Value a, int64_t factor) {
  return arith::MulIOp::create(builder, loc, a, i32(factor));
}

Value EntryCopies::quotient(Value a, int64_t divisor) {
  return arith::DivUIOp::create(builder, loc, a, i32(divisor));
}

Value EntryCopies::remainder(Value a, int64_t divisor) {
  return arith::RemUIOp::create(builder, loc, a, i32(divisor));
}

Value EntryCopies::toOffset(Value bytes) {
  return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), bytes);
}
