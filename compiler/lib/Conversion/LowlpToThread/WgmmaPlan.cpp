//===- WgmmaPlan.cpp - the registers of warpgroups' products --------------===//
//
// As in DotPlan.cpp, tiles are grids of registers. Warp w has 16 rows, two rows
// of registers, which begin at row r(w) of the grid of sums; any rows will do,
// as B is the same for all. With N / 8 columns of registers, an instruction
// takes
//
//   of the sums      (r(w), 0)  (r(w) + 1, 0)  (r(w), 1)  (r(w) + 1, 1)  ...
//   of a, in step k  (r(w), 2 k)  (r(w) + 1, 2 k)  (r(w), 2 k + 1)
//                    (r(w) + 1, 2 k + 1)
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

static Layout getUnit(int64_t elements) {
  return Layout::spatial({8, 4}) * Layout::local({1, elements});
}

static std::optional<RegisterGrid> divideSums(const Layout &layout) {
  Layout unit = getUnit(2);
  return divideIntoRegisters("the sums", layout, unit,
                             Layout::local({2, 1}) * unit);
}

/// The first row of registers of a warp.
static int64_t getFirstRow(const RegisterGrid &sums, int64_t warp) {
  return sums.outer.evaluate(warp, 0)[0] / 2 * 2;
}

std::optional<SmallVector<int64_t>> lowlp::orderSums(const Layout &layout) {
  std::optional<RegisterGrid> sums = divideSums(layout);
  int64_t columns = layout.shape()[1] / 8;
  if (!sums || sums->outer.numLocals() != 2 * columns)
    return std::nullopt;
  SmallVector<int64_t> order;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t half : {0, 1}) {
      std::optional<int64_t> index = sums->find([&](int64_t w) {
        return Place{getFirstRow(*sums, w) + half, column};
      });
      if (!index)
        return std::nullopt;
      order.push_back(*index);
    }
  return order;
}

/// The four registers of `a` that step `k` takes.
static FailureOr<SmallVector<int64_t, 4>> planStep(WgmmaOp op,
                                                   const RegisterGrid &sums,
                                                   const RegisterGrid &a,
                                                   int64_t k) {
  SmallVector<int64_t, 4> registers;
  for (int64_t r = 0; r < 4; ++r) {
    auto place = [&](int64_t w) {
      return Place{getFirstRow(sums, w) + r % 2, 2 * k + r / 2};
    };
    std::optional<int64_t> index = a.find(place);
    if (!index)
      return op.emitOpError("a warp needs ")
             << a.describe(place(0))
             << " for its rows of the sums, in one register in all warps";
    registers.push_back(*index);
  }
  return registers;
}

static FailureOr<WgmmaPlan> plan(WgmmaOp op) {
  TileType typeA = op.getA().getType();
  const Layout &layout = op.getType().getLayout();
  WgmmaPlan plan;
  std::optional<SmallVector<int64_t>> order = orderSums(layout);
  if (!order)
    return op.emitOpError("the layout of the sums, '")
           << str(layout) << "', does not give each warp all columns of 16 "
           << "rows in fragments of '"
           << str(Layout::local({2, 1}) * getUnit(2))
           << "', in one order in all warps";
  plan.sums = *order;
  int64_t elements = kRegisterBits / *getElementBits(typeA.getElementType());
  Layout unit = getUnit(elements),
         fragment = Layout::columnLocal({2, 2}) * unit;
  std::optional<RegisterGrid> a =
      divideIntoRegisters("a", typeA.getLayout(), unit, fragment);
  if (!a)
    return op.emitOpError("the layout of a, '")
           << str(typeA.getLayout()) << "', is not made of fragments of '"
           << str(fragment) << "'";
  for (int64_t k = 0; k < typeA.getShape()[1] / op.getInstructionK(); ++k) {
    auto step = planStep(op, *divideSums(layout), *a, k);
    if (failed(step))
      return failure();
    plan.steps.push_back(std::move(*step));
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
