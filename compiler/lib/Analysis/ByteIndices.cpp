//===- ByteIndices.cpp - indices of tables, put together in bytes ---------===//
#include "lowlp/Analysis/ByteIndices.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

/// Below, words of which only a quarter would be used cost as much as slices on
/// their own.
static constexpr int64_t kFewestIndices = 8;

std::optional<ByteIndices> ByteIndices::get(ArrayRef<int64_t> widths,
                                            int64_t numIndices,
                                            std::optional<int64_t> target) {
  ByteIndices indices;
  indices.widths.assign(widths.begin(), widths.end());
  indices.numIndices = numIndices;
  int64_t bits = indices.getIndexBits();
  bool fits = target && *target % 8 + bits <= 8;
  if (fits) {
    indices.firstBit = *target % 8;
    indices.byteOfAddress = *target / 8;
  }
  if (widths.size() == 1) {
    if (bits == 8 && fits)
      return indices;
    return std::nullopt;
  }
  bool areSlices = llvm::all_of(widths, [](int64_t width) {
    return width == 1 || width == 2 || width == 4;
  });
  if (!areSlices || bits > 8 || numIndices < kFewestIndices)
    return std::nullopt;
  return indices;
}

int64_t ByteIndices::getIndexBits() const {
  return llvm::sum_of(widths, int64_t(0));
}

ByteIndices::Place ByteIndices::getPlace(int64_t index) const {
  if (areWhole())
    return {index / perWord, index % perWord};
  int64_t words = getWordsOfGroup(), inGroup = index % (perWord * words);
  return {words * (index / (perWord * words)) + inGroup % words,
          inGroup / words};
}

int64_t ByteIndices::getNumGroups() const {
  return llvm::divideCeil(numIndices, perWord * getWordsOfGroup());
}

int64_t ByteIndices::getShift(unsigned slice, int64_t r) const {
  int64_t width = widths[slice];
  // Two words have slices of 4 bits.
  int64_t source = width == 4 ? r % 2 * 4 : r * width;
  int64_t target = firstBit;
  for (int64_t below : getWidths().take_front(slice))
    target += below;
  return target - source;
}

double ByteIndices::countInstructions() const {
  double ofAddress = byteOfAddress ? 1 : 2;
  if (areWhole())
    return ofAddress;
  bool isWide = getWordsOfGroup() == 4;
  int64_t ofGroup = 0;
  for (auto [slice, width] : llvm::enumerate(widths)) {
    // What brings a slice to the bytes of its indices.
    if (isWide)
      ofGroup += width == 4 ? 2 : width == 1 ? 3 : 0;
    else
      ofGroup += width == 4 ? 0 : width == 1 ? 4 : 3;
    for (int64_t r = 0; r < getWordsOfGroup(); ++r)
      ofGroup += 1 + (getShift(slice, r) != 0);
  }
  return ofAddress + static_cast<double>(ofGroup * getNumGroups()) /
                         static_cast<double>(numIndices);
}
