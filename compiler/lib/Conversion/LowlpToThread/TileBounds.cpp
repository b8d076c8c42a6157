//===- TileBounds.cpp - whether a tile lies inside for certain ------------===//
//
// MLIR's analysis of integer ranges follows offsets through arithmetic, loops
// and what they carry: a stage that becomes (stage + 1) % 3 stays below 3.
//
//===----------------------------------------------------------------------===//
#include "TileBounds.h"

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lowlp;

TileBounds::TileBounds(Operation *root) {
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  // Without a result nothing is known of an offset.
  (void)solver.initializeAndRun(root);
}

int64_t TileBounds::getLargestOffset(ArrayRef<int64_t> shape,
                                     ArrayRef<int64_t> tile, size_t dim) {
  size_t firstTileDim = shape.size() - tile.size();
  return shape[dim] - (dim < firstTileDim ? 1 : tile[dim - firstTileDim]);
}

bool TileBounds::mayBeInside(ArrayRef<int64_t> shape, ArrayRef<int64_t> tile) {
  return llvm::all_of(llvm::seq<size_t>(0, shape.size()), [&](size_t dim) {
    return getLargestOffset(shape, tile, dim) >= 0;
  });
}

bool TileBounds::isInside(ValueRange offsets, ArrayRef<int64_t> shape,
                          ArrayRef<int64_t> tile) const {
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    int64_t largest = getLargestOffset(shape, tile, dim);
    if (std::optional<int64_t> constant = getConstantIntValue(offset)) {
      if (*constant < 0 || *constant > largest)
        return false;
      continue;
    }
    auto *range = solver.lookupState<dataflow::IntegerValueRangeLattice>(offset);
    if (!range || range->getValue().isUninitialized())
      return false;
    const ConstantIntRanges &values = range->getValue().getValue();
    if (values.smin().isNegative() || values.smax().sgt(largest))
      return false;
  }
  return true;
}
