//===- DotPlan.cpp - the matrix instructions of a block's product ---------===//
//
// Each operand's layout is divided by a register of the instruction's fragment:
// what the 32 lanes of a warp hold in one of their registers (PTX ISA, "Matrix
// Fragments for mma.m16n8k16", "k32", "k128" and "k256"), with e elements in 32
// bits:
//
//   a = outerA . spatial(8, 4).local(1, e)           8 rows,  4 e columns
//   b = outerB . column_spatial(4, 8).local(e, 1)    4 e rows, 8 columns
//   c = outerC . spatial(8, 4).local(1, 2)           8 rows,  8 columns
//
// The outer layouts map (warp, register) to a place in a grid of registers. For
// fragment (m, n) of c and step k an instruction takes
//
//   of c   (2 m, n)  (2 m + 1, n)
//   of a   (2 m, 2 k)  (2 m + 1, 2 k)  (2 m, 2 k + 1)  (2 m + 1, 2 k + 1)
//   of b   (2 k, n)  (2 k + 1, n)
//
// Of bits whose slices are an odd number of registers, step k takes of column k
// alone (m16n8k128).
//
// Where c has S slices of the rows of a, fragment (m, n) of slice s takes the
// rows of a from m on, and the k of its slice.
//
// Lanes may hold more than e elements of K side by side, if they do in both
// operands: then the registers of K stand for other elements of their block.
//
// Registers cannot be indexed at run time, so each must have the same index in
// every warp; otherwise they may be in any order. Steps go in increasing order
// of k.
//
//===----------------------------------------------------------------------===//
#include "DotPlan.h"

#include "RegisterGrid.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

namespace {

constexpr int64_t kRegisterBits = 32;

using Operand = RegisterGrid;
using Place = RegisterGrid::Place;
using PlaceInWarp = RegisterGrid::PlaceInWarp;

class Planner {
public:
  explicit Planner(DotOp op) : op(op) {}
  FailureOr<SmallVector<DotStep>> plan();

private:
  LogicalResult divideOperands();
  bool divideVectors(int64_t e, const Layout &unitA, const Layout &unitB);
  LogicalResult divide(Operand &operand, StringRef name, TileType tile,
                       const Layout &unit, const Layout &fragment);
  FailureOr<int64_t> require(const Operand &operand, PlaceInWarp place,
                             int64_t sum);
  FailureOr<DotStep> planStep(int64_t sum, int64_t k);
  FailureOr<SmallVector<DotStep>> planByK();

  DotOp op;
  Operand a, b, c;
  /// Whether lanes hold more elements of K side by side than a register has.
  bool holdsVectors = false;
  /// Registers along K that an instruction takes.
  int64_t perStep = 2;
};

} // namespace

/// Makes of `tile` registers of layout `unit`, or a diagnostic.
LogicalResult Planner::divide(Operand &operand, StringRef name, TileType tile,
                              const Layout &unit, const Layout &fragment) {
  const Layout &layout = tile.getLayout();
  std::optional<RegisterGrid> grid =
      divideIntoRegisters(name, layout, unit, fragment);
  if (!grid) {
    unsigned bits = *getElementBits(op.getA().getType().getElementType());
    return op.emitOpError("the layout of ")
           << name << ", '" << str(layout)
           << "', is not made of the fragments of mma m16n8k"
           << perStep * 4 * kRegisterBits / bits << ", '" << str(fragment)
           << "'";
  }
  operand = *grid;
  return success();
}

/// Divides a and b where lanes hold more than `e` elements of K side by side:
/// as many in both. With v elements, register r of K of a block of 4 v becomes
/// what lane t holds of it, its elements v t + e r and on.
bool Planner::divideVectors(int64_t e, const Layout &unitA,
                            const Layout &unitB) {
  const Layout &layoutA = op.getA().getType().getLayout();
  const Layout &layoutB = op.getB().getType().getLayout();
  int64_t sliceK = layoutA.shape()[1] / op.getNumSlices();
  if (divideRight(layoutA, unitA) && divideRight(layoutB, unitB))
    return false;
  for (int64_t v = 2 * e; sliceK % (4 * v) == 0; v *= 2) {
    Result<Layout> outerA =
        divideRight(layoutA, Layout::spatial({8, 4}) * Layout::local({1, v}));
    Result<Layout> outerB = divideRight(layoutB, Layout::columnSpatial({4, 8}) *
                                                     Layout::local({v, 1}));
    if (!outerA || !outerB)
      continue;
    Layout registersA = *outerA * Layout::local({1, v / e}) * unitA;
    Layout registersB = *outerB * Layout::local({v / e, 1}) * unitB;
    std::optional<RegisterGrid> gridA = divideIntoRegisters(
        "a", registersA, unitA, Layout::columnLocal({2, 2}) * unitA);
    std::optional<RegisterGrid> gridB = divideIntoRegisters(
        "b", registersB, unitB, Layout::local({2, 1}) * unitB);
    if (!gridA || !gridB)
      continue;
    a = *gridA;
    b = *gridB;
    holdsVectors = true;
    return true;
  }
  return false;
}

LogicalResult Planner::divideOperands() {
  TileType typeA = op.getA().getType(), typeB = op.getB().getType();
  int64_t e = kRegisterBits / *getElementBits(typeA.getElementType());
  Layout unitA = Layout::spatial({8, 4}) * Layout::local({1, e});
  Layout unitB = Layout::columnSpatial({4, 8}) * Layout::local({e, 1});
  Layout unitC = Layout::spatial({8, 4}) * Layout::local({1, 2});
  int64_t sliceK = op.getA().getType().getShape()[1] / op.getNumSlices();
  if (e == kRegisterBits && sliceK % (8 * e) != 0)
    perStep = 1;
  if (divideVectors(e, unitA, unitB))
    return divide(c, "c", op.getC().getType(), unitC,
                  Layout::local({2, 1}) * unitC);
  // Each operand that does not fit is named.
  LogicalResult fitA =
      divide(a, "a", typeA, unitA, Layout::columnLocal({2, perStep}) * unitA);
  LogicalResult fitB =
      divide(b, "b", typeB, unitB, Layout::local({perStep, 1}) * unitB);
  LogicalResult fitC =
      divide(c, "c", op.getC().getType(), unitC, Layout::local({2, 1}) * unitC);
  return success(succeeded(fitA) && succeeded(fitB) && succeeded(fitC));
}

/// As `RegisterGrid::find`, with a diagnostic where register `sum` of c lacks
/// it.
FailureOr<int64_t> Planner::require(const Operand &operand, PlaceInWarp place,
                                    int64_t sum) {
  if (std::optional<int64_t> index = operand.find(place))
    return *index;
  return op.emitOpError("a warp needs ")
         << operand.describe(place(0)) << " for "
         << c.describe(c.outer.evaluate(0, sum))
         << ", in one register in all warps";
}

/// The instruction of step `k` for the fragment whose upper half is register
/// `sum` of c.
FailureOr<DotStep> Planner::planStep(int64_t sum, int64_t k) {
  auto at = [&](int64_t w, int64_t d) { return c.outer.evaluate(w, sum)[d]; };
  int64_t sliceRows = a.outer.shape()[0];
  int64_t sliceColumns = a.outer.shape()[1] / op.getNumSlices();
  auto rowOfA = [&](int64_t w) { return at(w, 0) % sliceRows; };
  auto columnOfA = [&](int64_t w, int64_t r) {
    return at(w, 0) / sliceRows * sliceColumns + perStep * k + r;
  };
  FailureOr<int64_t> lower =
      require(c, [&](int64_t w) { return Place{at(w, 0) ^ 1, at(w, 1)}; }, sum);
  if (failed(lower))
    return failure();
  DotStep step;
  step.c = {sum, *lower};
  for (int64_t r = 0; r < 2 * perStep; ++r) {
    FailureOr<int64_t> index = require(
        a,
        [&](int64_t w) {
          return Place{rowOfA(w) ^ (r % 2), columnOfA(w, r / 2)};
        },
        sum);
    if (failed(index))
      return failure();
    step.a.push_back(*index);
  }
  for (int64_t r = 0; r < perStep; ++r) {
    FailureOr<int64_t> index = require(
        b, [&](int64_t w) { return Place{columnOfA(w, r), at(w, 1)}; }, sum);
    if (failed(index))
      return failure();
    step.b.push_back(*index);
  }
  return step;
}

/// Vectors are looked up just before, and are few: a step goes through all
/// fragments of c before the next, so that no instruction waits for the one
/// before it.
FailureOr<SmallVector<DotStep>> Planner::planByK() {
  SmallVector<DotStep> steps;
  for (int64_t k = 0; k < a.outer.shape()[1] / 2 / op.getNumSlices(); ++k)
    for (int64_t i = 0; i < c.outer.numLocals(); ++i) {
      if (c.outer.evaluate(0, i)[0] % 2 != 0)
        continue;
      FailureOr<DotStep> step = planStep(i, k);
      if (failed(step))
        return failure();
      steps.push_back(std::move(*step));
    }
  return steps;
}

FailureOr<SmallVector<DotStep>> Planner::plan() {
  if (failed(divideOperands()))
    return failure();
  if (holdsVectors)
    return planByK();
  SmallVector<DotStep> steps;
  for (int64_t i = 0; i < c.outer.numLocals(); ++i) {
    // The upper half of a fragment stands for both.
    if (c.outer.evaluate(0, i)[0] % 2 != 0)
      continue;
    for (int64_t k = 0; k < a.outer.shape()[1] / perStep / op.getNumSlices();
         ++k) {
      FailureOr<DotStep> step = planStep(i, k);
      if (failed(step))
        return failure();
      steps.push_back(std::move(*step));
    }
  }
  return steps;
}

FailureOr<DotPlans> lowlp::planDots(Operation *root) {
  DotPlans plans;
  bool allFit = true;
  root->walk([&](DotOp op) {
    FailureOr<SmallVector<DotStep>> steps = Planner(op).plan();
    if (succeeded(steps))
      plans[op] = std::move(*steps);
    else
      allFit = false;
  });
  if (!allFit)
    return failure();
  return plans;
}
