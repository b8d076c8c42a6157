//===- WgmmaPlan.cpp - the registers of warpgroups' products --------------===//
//
// As in DotPlan.cpp, tiles are grids of registers. Warp w has some parts of 16
// rows, two rows of registers, of which part p begins at row r(p, w) of the
// grid of accumulators; any rows will do, as B is the same for all, or for all
// warps of a slice of K. With N / 8
// columns of registers, the instructions of a part take
//
//   of the accumulators  (r, 0)  (r + 1, 0)  (r, 1)  (r + 1, 1)  ...
//   of a, in step k      (r, 2 k)  (r + 1, 2 k)  (r, 2 k + 1)  (r + 1, 2 k + 1)
//
//===----------------------------------------------------------------------===//
#include "WgmmaPlan.h"

#include "RegisterGrid.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

using Place = RegisterGrid::Place;

static constexpr int64_t kRegisterBits = 32;
static constexpr int64_t kThreadsPerWarp = 32;

static Layout getUnit(int64_t elements) {
  return Layout::spatial({8, 4}) * Layout::local({1, elements});
}

static std::optional<RegisterGrid> divideAccumulators(const Layout &layout) {
  Layout unit = getUnit(2);
  return divideIntoRegisters("the accumulators", layout, unit,
                             Layout::local({2, 1}) * unit);
}

/// Where the parts of each warp begin, by part and warp: rows of registers, in
/// the order in which the warp's threads hold them.
static SmallVector<SmallVector<int64_t>>
getFirstRows(const RegisterGrid &accumulators, int64_t numWarps) {
  SmallVector<SmallVector<int64_t>> parts;
  for (int64_t warp = 0; warp < numWarps; ++warp) {
    llvm::SmallSetVector<int64_t, 4> rows;
    for (int64_t index = 0; index < accumulators.outer.numLocals(); ++index)
      rows.insert(accumulators.outer.evaluate(warp, index)[0] / 2 * 2);
    if (warp == 0)
      parts.resize(rows.size());
    if (rows.size() != parts.size())
      return {};
    for (auto [part, row] : llvm::zip_equal(parts, rows))
      part.push_back(row);
  }
  return parts;
}

/// The registers of the accumulators of a part.
static std::optional<SmallVector<int64_t>>
orderPart(const RegisterGrid &accumulators, ArrayRef<int64_t> firstRows,
          int64_t columns) {
  SmallVector<int64_t> order;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t half : {0, 1}) {
      std::optional<int64_t> index = accumulators.find(
          [&](int64_t w) { return Place{firstRows[w] + half, column}; });
      if (!index)
        return std::nullopt;
      order.push_back(*index);
    }
  return order;
}

std::optional<SmallVector<SmallVector<int64_t>>>
lowlp::orderAccumulators(const Layout &layout) {
  std::optional<RegisterGrid> accumulators = divideAccumulators(layout);
  if (!accumulators)
    return std::nullopt;
  int64_t columns = layout.shape()[1] / 8;
  SmallVector<SmallVector<int64_t>> orders;
  for (ArrayRef<int64_t> rows :
       getFirstRows(*accumulators, layout.numThreads() / kThreadsPerWarp)) {
    std::optional<SmallVector<int64_t>> order =
        orderPart(*accumulators, rows, columns);
    if (!order)
      return std::nullopt;
    orders.push_back(std::move(*order));
  }
  if (accumulators->outer.numLocals() !=
      2 * columns * static_cast<int64_t>(orders.size()))
    return std::nullopt;
  return orders;
}

/// The four registers of `a` that step `k` of a part, or of its slice of K,
/// takes.
static FailureOr<SmallVector<int64_t, 4>> planStep(WgmmaOp op,
                                                   ArrayRef<int64_t> firstRows,
                                                   const RegisterGrid &a,
                                                   int64_t k) {
  int64_t rows = a.outer.shape()[0];
  int64_t ofSlice = a.outer.shape()[1] / op.getNumSlices();
  SmallVector<int64_t, 4> registers;
  for (int64_t r = 0; r < 4; ++r) {
    auto place = [&](int64_t w) {
      int64_t slice = firstRows[w] / rows;
      return Place{firstRows[w] % rows + r % 2,
                   slice * ofSlice + 2 * k + r / 2};
    };
    std::optional<int64_t> index = a.find(place);
    if (!index)
      return op.emitOpError("a warp needs ")
             << a.describe(place(0))
             << " for its rows of the accumulators, in one register in all "
                "warps";
    registers.push_back(*index);
  }
  return registers;
}

/// Whether the warps of a slice follow each other: the product takes the part
/// of b that the number of the warp names.
static LogicalResult verifySlices(WgmmaOp op,
                                  ArrayRef<SmallVector<int64_t>> firstRows,
                                  int64_t rowsOfA) {
  int64_t numSlices = op.getNumSlices();
  for (ArrayRef<int64_t> rows : firstRows)
    for (auto [warp, row] : llvm::enumerate(rows)) {
      auto slice = static_cast<int64_t>(warp) * numSlices /
                   static_cast<int64_t>(rows.size());
      if (row / rowsOfA != slice)
        return op.emitOpError("warp ")
               << warp << " must have accumulators of slice " << slice
               << " of K, but has some of slice " << row / rowsOfA;
    }
  return success();
}

static FailureOr<WgmmaPlan> plan(WgmmaOp op) {
  TileType typeA = op.getA().getType();
  const Layout &layout = op.getType().getLayout();
  std::optional<SmallVector<SmallVector<int64_t>>> orders =
      orderAccumulators(layout);
  if (!orders)
    return op.emitOpError("the layout of the accumulators, '")
           << str(layout) << "', does not give each warp all columns of 16 "
           << "rows in fragments of '"
           << str(Layout::local({2, 1}) * getUnit(2))
           << "', in one order in all warps";
  int64_t elements = kRegisterBits / *getElementBits(typeA.getElementType());
  Layout unit = getUnit(elements),
         fragment = Layout::columnLocal({2, 2}) * unit;
  std::optional<RegisterGrid> a =
      divideIntoRegisters("a", typeA.getLayout(), unit, fragment);
  if (!a)
    return op.emitOpError("the layout of a, '")
           << str(typeA.getLayout()) << "', is not made of fragments of '"
           << str(fragment) << "'";
  WgmmaPlan plan;
  SmallVector<SmallVector<int64_t>> firstRows = getFirstRows(
      *divideAccumulators(layout), layout.numThreads() / kThreadsPerWarp);
  if (failed(verifySlices(op, firstRows, a->outer.shape()[0])))
    return failure();
  for (auto [order, rows] : llvm::zip_equal(*orders, firstRows)) {
    WgmmaPart part;
    part.accumulators = std::move(order);
    for (int64_t k = 0; k < op.getSliceK() / op.getInstructionK(); ++k) {
      auto step = planStep(op, rows, *a, k);
      if (failed(step))
        return failure();
      part.steps.push_back(std::move(*step));
    }
    plan.push_back(std::move(part));
  }
  return plan;
}

FailureOr<WgmmaPlans> lowlp::planWgmmas(Operation *root) {
  WgmmaPlans plans;
  bool allFit = true;
  root->walk([&](WgmmaOp op) {
    FailureOr<WgmmaPlan> found = plan(op);
    if (succeeded(found))
      plans[op] = std::move(*found);
    else
      allFit = false;
  });
  if (!allFit)
    return failure();
  return plans;
}
