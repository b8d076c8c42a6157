//===- RegisterGrid.cpp - operands of matrix instructions -----------------===//
#include "RegisterGrid.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowlp;

std::optional<int64_t> RegisterGrid::find(PlaceInWarp place) const {
  for (int64_t i = 0; i < outer.numLocals(); ++i) {
    bool everywhere = true;
    for (int64_t w = 0; w < outer.numThreads() && everywhere; ++w)
      everywhere = outer.evaluate(w, i) == place(w);
    if (everywhere)
      return i;
  }
  return std::nullopt;
}

std::string RegisterGrid::describe(const Place &place) const {
  return llvm::formatv("rows {0} to {1} and columns {2} to {3} of {4}",
                       place[0] * rows, (place[0] + 1) * rows - 1,
                       place[1] * columns, (place[1] + 1) * columns - 1, name)
      .str();
}

std::optional<RegisterGrid> lowlp::divideIntoRegisters(StringRef name,
                                                       const Layout &layout,
                                                       const Layout &unit,
                                                       const Layout &fragment) {
  Result<Layout> outer = divideRight(layout, unit);
  if (!outer)
    return std::nullopt;
  for (auto [d, extent] : llvm::enumerate(layout.shape()))
    if (extent % fragment.shape()[d] != 0)
      return std::nullopt;
  return RegisterGrid{name, *outer, unit.shape()[0], unit.shape()[1]};
}

/// The positions in a vector of the elements of `registers`, `size` each.
static SmallVector<int64_t> getPositions(ArrayRef<int64_t> registers,
                                         int64_t size) {
  SmallVector<int64_t> positions;
  for (int64_t index : registers)
    for (int64_t j = 0; j < size; ++j)
      positions.push_back(index * size + j);
  return positions;
}

Value lowlp::gatherRegisters(OpBuilder &builder, Location loc, Value tile,
                             ArrayRef<int64_t> registers, int64_t size) {
  SmallVector<int64_t> positions = getPositions(registers, size);
  int64_t count = static_cast<int64_t>(positions.size());
  bool isSlice = positions.back() - positions.front() == count - 1 &&
                 llvm::is_sorted(positions);
  if (isSlice && count == cast<VectorType>(tile.getType()).getNumElements())
    return tile;
  if (isSlice)
    return vector::ExtractStridedSliceOp::create(
        builder, loc, tile, ArrayRef<int64_t>{positions.front()},
        ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  return vector::ShuffleOp::create(builder, loc, tile, tile, positions);
}
