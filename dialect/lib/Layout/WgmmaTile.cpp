//===- WgmmaTile.cpp - Shared tiles that wgmma multiplies by --------------===//
//
// Without its swizzle, an address is a sum of what each dimension contributes.
// So strides are read off single elements, and then each dimension is compared
// with what the instruction expects of it.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/WgmmaTile.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include <vector>

using namespace lowlp;

namespace {

constexpr int64_t bytesPerChunk = 16;
constexpr int64_t rowsPerGroup = 8;

/// What the hardware xors into the chunk of row `row`.
int64_t expectedChange(int64_t swizzleBytes, int64_t row) {
  // Bit 7 of the address on: rows of 128 bytes, pairs of 64, fours of 32.
  return row * swizzleBytes / 128 % (swizzleBytes / bytesPerChunk);
}

class Finder {
public:
  Finder(const SharedLayout &layout, int64_t elementBytes)
      : layout(layout), elementBytes(elementBytes), dimN(layout.rank() - 2),
        dimK(layout.rank() - 1), extentN(layout.shape()[size_t(dimN)]),
        extentK(layout.shape()[size_t(dimK)]) {}

  std::optional<WgmmaTile> find() const;
  std::string listAllowed() const;

private:
  /// The byte at which index `i` along `dim` lies, all else being 0.
  int64_t contribution(int64_t dim, int64_t i) const {
    std::vector<int64_t> index(size_t(layout.rank()), 0);
    index[size_t(dim)] = i;
    return (*layout.layout().threadsHolding(index))[0].local * elementBytes;
  }
  std::optional<int64_t> findSwizzle() const;
  bool fits(const WgmmaTile &tile) const;
  bool beginsAtPatterns(const WgmmaTile &tile) const;

  const SharedLayout &layout;
  int64_t elementBytes, dimN, dimK, extentN, extentK;
};

} // namespace

/// The bytes of the hardware's swizzle; nothing for any other one.
std::optional<int64_t> Finder::findSwizzle() const {
  if (!layout.swizzle())
    return 0;
  const Swizzle &swizzle = *layout.swizzle();
  int64_t bytes = swizzle.extent * bytesPerChunk;
  if (swizzle.dim != dimK || swizzle.byDim != dimN || swizzle.byUnit != 1 ||
      swizzle.unit * elementBytes != bytesPerChunk ||
      (bytes != 32 && bytes != 64 && bytes != 128))
    return std::nullopt;
  for (int64_t row = 0; row < extentN; ++row) {
    int64_t change =
        (row % swizzle.byExtent >> swizzle.logStep) & (swizzle.extent - 1);
    if (change != expectedChange(bytes, row))
      return std::nullopt;
  }
  return bytes;
}

bool Finder::fits(const WgmmaTile &tile) const {
  int64_t run = tile.swizzleBytes ? tile.swizzleBytes : bytesPerChunk;
  for (int64_t row = 0; row < extentN; ++row)
    if (contribution(dimN, row) !=
        row / rowsPerGroup * tile.strideBytes + row % rowsPerGroup * run)
      return false;
  for (int64_t k = 0; k < extentK; ++k) {
    int64_t byte = k * elementBytes;
    if (contribution(dimK, k) != byte / run * tile.leadingBytes + byte % run)
      return false;
  }
  return true;
}

/// Whether the patterns of a swizzle begin where the hardware takes them to.
bool Finder::beginsAtPatterns(const WgmmaTile &tile) const {
  int64_t align = tile.alignBytes();
  if (tile.leadingBytes % align || tile.strideBytes % align)
    return false;
  for (int64_t dim = 0; dim < dimN; ++dim)
    for (int64_t i = 0; i < layout.shape()[size_t(dim)]; ++i)
      if (contribution(dim, i) % align)
        return false;
  return true;
}

std::optional<WgmmaTile> Finder::find() const {
  std::optional<int64_t> swizzle = findSwizzle();
  if (!swizzle)
    return std::nullopt;
  int64_t run = *swizzle ? *swizzle : bytesPerChunk;
  if (extentK * elementBytes % run)
    return std::nullopt;
  int64_t pattern = rowsPerGroup * run;
  bool hasGroups = extentN > rowsPerGroup;
  bool hasRuns = extentK * elementBytes > run;
  WgmmaTile tile = {*swizzle,
                    hasRuns ? contribution(dimK, run / elementBytes) : pattern,
                    hasGroups ? contribution(dimN, rowsPerGroup) : pattern};
  if (!fits(tile) || !beginsAtPatterns(tile))
    return std::nullopt;
  return tile;
}

std::string Finder::listAllowed() const {
  std::string text;
  int64_t rowBytes = extentK * elementBytes;
  if (extentN % rowsPerGroup || rowBytes % (2 * bytesPerChunk))
    return "none, as rows must be multiples of 8 and take multiples of 32 "
           "bytes";
  std::vector<int64_t> outer(layout.shape());
  int64_t perChunk = bytesPerChunk / elementBytes;
  for (int64_t swizzleBytes : {128, 64, 32}) {
    if (rowBytes % swizzleBytes)
      continue;
    outer[size_t(dimN)] = 1;
    outer[size_t(dimK)] = rowBytes / swizzleBytes;
    int64_t logStep = swizzleBytes == 128 ? 0 : swizzleBytes == 64 ? 1 : 2;
    Result<SharedLayout> allowed = SharedLayout::swizzled(
        Layout::local(outer),
        Layout::local({extentN, swizzleBytes / bytesPerChunk}), /*dim=*/1,
        logStep, Layout::local({1, perChunk}));
    text += allowed->str() + " or ";
  }
  outer[size_t(dimN)] = extentN / rowsPerGroup;
  outer[size_t(dimK)] = rowBytes / bytesPerChunk;
  Result<SharedLayout> plain = SharedLayout::plain(
      Layout::local(outer) * Layout::local({rowsPerGroup, perChunk}));
  return text + plain->str();
}

Result<WgmmaTile> lowlp::findWgmmaTile(const SharedLayout &layout,
                                       int64_t elementBytes) {
  Finder finder(layout, elementBytes);
  if (std::optional<WgmmaTile> tile = finder.find())
    return *tile;
  return Error{"'" + layout.str() + "'; allowed are " + finder.listAllowed()};
}
