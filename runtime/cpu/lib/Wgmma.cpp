//===- Wgmma.cpp - Products of warpgroups in flight -----------------------===//
//
// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16" and "k32": the
// fragment of A in a warp is that of mma for its 16 rows, and four accumulators
// for each 8 columns are those of mma. So a warp's part is one mma for each 8
// columns, with the fragment of B read from shared memory:
//
//   register r of lane l   bytes 16 r + 4 (l % 4) of row l / 4
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"

#include "Mma.h"

#include <cstring>

using namespace lowlp::cpu;

constexpr int64_t rowsPerGroup = 8;
constexpr int numLanes = 32;

int64_t MatrixTile::offsetOf(int64_t row, int64_t chunk) const {
  int64_t group = row / rowsPerGroup, inGroup = row % rowsPerGroup;
  int64_t offset = byteOffset + group * strideBytes;
  if (swizzleBytes == 0)
    return offset + chunk * leadingBytes + inGroup * bytesPerChunk;
  offset += inGroup * swizzleBytes + chunk * bytesPerChunk;
  // The hardware goes by the address: bits 7 on change bits 4 on.
  uintptr_t address = uintptr_t(base) + uintptr_t(offset);
  uintptr_t mask = uintptr_t(swizzleBytes / bytesPerChunk - 1);
  uintptr_t swizzled = address ^ ((address >> 7 & mask) << 4);
  return offset + int64_t(swizzled - address);
}

bool MatrixTile::operator==(const MatrixTile &other) const {
  return uintptr_t(base) + uintptr_t(byteOffset) ==
             uintptr_t(other.base) + uintptr_t(other.byteOffset) &&
         leadingBytes == other.leadingBytes &&
         strideBytes == other.strideBytes && swizzleBytes == other.swizzleBytes;
}

//===----------------------------------------------------------------------===//
// One warp
//===----------------------------------------------------------------------===//

void WarpProducts::reset() {
  products.clear();
  numCommitted = 0;
  isFenced = false;
  pool.clear();
  freeAccumulators.clear();
}

WarpAccumulators *WarpProducts::find(int64_t name) {
  size_t index = indexOf(name);
  if (name <= 0 || index >= pool.size() || nameOf(index, *pool[index]) != name)
    return nullptr;
  return pool[index].get();
}

size_t WarpProducts::make(int32_t numPerLane) {
  size_t index = pool.size();
  if (freeAccumulators.empty()) {
    pool.push_back(std::make_unique<WarpAccumulators>());
  } else {
    index = freeAccumulators.back();
    freeAccumulators.pop_back();
  }
  pool[index]->numPerLane = numPerLane;
  pool[index]->taken = 0;
  return index;
}

void WarpProducts::take(size_t index, uint32_t laneBit) {
  WarpAccumulators &accumulators = *pool[index];
  accumulators.taken |= laneBit;
  if (accumulators.taken != UINT32_MAX)
    return;
  ++accumulators.version;
  freeAccumulators.push_back(index);
}

bool WarpProducts::isPending(const char *site) const {
  for (const PendingProduct &product : products)
    if (product.site == site)
      return true;
  return false;
}

void WarpProducts::add(PendingProduct product) {
  product.group = numCommitted;
  WarpAccumulators &accumulators = *pool[product.accumulators];
  ++accumulators.numPending;
  accumulators.lastSite = product.site;
  products.push_back(product);
}

//===----------------------------------------------------------------------===//
// Held bytes
//===----------------------------------------------------------------------===//

void HeldTiles::reset(const void *newShared, int64_t newBytes) {
  shared = uintptr_t(newShared);
  sharedBytes = newBytes;
  numHeld = 0;
  lines.clear();
}

template <typename Visit>
void HeldTiles::forEachLine(const PendingProduct &product, Visit visit) {
  if (lines.empty())
    lines.resize(size_t(sharedBytes / MatrixTile::bytesPerChunk + 1));
  for (int64_t row = 0; row < product.n; ++row)
    for (int64_t chunk = 0; chunk < MatrixTile::chunksPerRow; ++chunk) {
      uintptr_t address =
          uintptr_t(product.b.base) + uintptr_t(product.b.offsetOf(row, chunk));
      visit(lines[(address - shared) / MatrixTile::bytesPerChunk]);
    }
}

void HeldTiles::hold(const PendingProduct &product, int32_t thread) {
  ++numHeld;
  forEachLine(product, [&](Line &line) {
    ++line.count;
    line.last = {product.site, thread};
  });
}

void HeldTiles::free(const PendingProduct &product) {
  --numHeld;
  forEachLine(product, [](Line &line) { --line.count; });
}

const HeldTiles::Holder *HeldTiles::find(const void *address,
                                         int64_t bytes) const {
  uintptr_t begin = uintptr_t(address) - shared;
  if (begin >= uintptr_t(sharedBytes))
    return nullptr;
  uintptr_t last = (begin + uintptr_t(bytes) - 1) / MatrixTile::bytesPerChunk;
  for (uintptr_t line = begin / MatrixTile::bytesPerChunk; line <= last; ++line)
    if (lines[line].count)
      return &lines[line].last;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

void lowlp::cpu::carryOut(const PendingProduct &product,
                          WarpAccumulators &accumulators) {
  const auto *base = static_cast<const char *>(product.b.base);
  for (int32_t column = 0; column < product.n; column += rowsPerGroup) {
    uint32_t b[numLanes][2];
    MmaOperands lanes[numLanes];
    for (int lane = 0; lane < numLanes; ++lane) {
      for (int r = 0; r < 2; ++r)
        std::memcpy(&b[lane][r],
                    base + product.b.offsetOf(column + lane / 4, r) +
                        lane % 4 * 4,
                    sizeof(uint32_t));
      uint32_t *four = accumulators.words[lane] + column / 2;
      lanes[lane] = {product.a[lane], b[lane], four, four};
    }
    multiplyMatrices(product.kind, lanes);
  }
}
