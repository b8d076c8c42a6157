//===- AccessCost.cpp - what loads, stores and conversions cost -----------===//
#include "AccessCost.h"

#include "lowlp/Layout/Scratch.h"
#include "lowlp/Layout/WarpConversion.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kSectorBytes = 32;
static constexpr int64_t kMaxAccessBytes = 16;
static constexpr int64_t kSectorsPerAccess = 2;
/// Of a stride that is known at launch: further than what an access touches.
static constexpr int64_t kLargeStride = 1 << 20;

/// Strides of the view's last dimensions, in bits.
static SmallVector<int64_t> getBitStrides(ViewGlobalOp view, TileType tile) {
  int64_t bits = *getElementBits(tile.getElementType());
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  SmallVector<int64_t> result;
  for (OpFoldResult stride : ArrayRef(strides).take_back(tile.getRank())) {
    std::optional<int64_t> known;
    if (stride)
      known = getConstantIntValue(stride);
    result.push_back(bits * known.value_or(kLargeStride));
  }
  return result;
}

/// How many elements one access moves.
static int64_t getVectorSize(const Layout &layout, ArrayRef<int64_t> strides,
                             int64_t bits) {
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    if (stride != bits)
      continue;
    int64_t run = layout.contiguousLocals(static_cast<int64_t>(dim));
    // The largest power of two that divides the run and fits.
    int64_t vector = run & -run;
    while (vector > 1 && vector * bits > kMaxAccessBytes * 8)
      vector /= 2;
    return vector;
  }
  return 1;
}

int64_t lowlp::getGlobalAccessCost(ViewGlobalOp view, TileType tile) {
  const Layout &layout = tile.getLayout();
  int64_t bits = *getElementBits(tile.getElementType());
  SmallVector<int64_t> strides = getBitStrides(view, tile);
  int64_t vector = getVectorSize(layout, strides, bits);
  int64_t cost = 0;
  for (int64_t local = 0; local < layout.numLocals(); local += vector) {
    std::set<int64_t> sectors;
    for (int64_t lane = 0; lane < WarpConversion::warpThreads; ++lane) {
      std::vector<int64_t> index = layout.evaluate(lane, local);
      int64_t bit = 0;
      for (auto [along, stride] : llvm::zip_equal(index, strides))
        bit += along * stride;
      for (int64_t end = bit + vector * bits; bit < end;
           bit = (bit / (8 * kSectorBytes) + 1) * (8 * kSectorBytes))
        sectors.insert(bit / (8 * kSectorBytes));
    }
    int64_t passes = llvm::divideCeil(static_cast<int64_t>(sectors.size()),
                                      kSectorsPerAccess);
    cost += WarpConversion::shuffleCost * passes;
  }
  return cost;
}

int64_t lowlp::getConversionCost(TileType source, const Layout &result) {
  int64_t bits = *getElementBits(source.getElementType());
  std::optional<WarpConversion> plan =
      planWarpConversion(source.getLayout(), result, bits);
  if (plan && plan->cost() == 0)
    return 0;
  int64_t shared = planScratch(source.getLayout(), result, bits).cost;
  return plan ? std::min(plan->cost(), shared) : shared;
}
