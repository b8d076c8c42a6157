//===- FoldScales.cpp - lowlp-fold-scales ---------------------------------===//
//
// A product is linear in its weights. What a program does to a row of them, one
// number for all of it, can be done to the row's accumulators instead:
//
//   dot(w * s, x) = s * dot(w, x)
//   dot(w - z, x) = dot(w, x) - z * dot(1, x)
//
// so the steps from codes to weights (RowSteps.h) are taken again, in their
// order, on the accumulators of f32.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "RowSteps.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-fold-scales"

namespace lowlp {
#define GEN_PASS_DEF_FOLDSCALES
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

/// Instructions: of a matrix instruction, in those that a warp could begin
/// meanwhile; of a weight that no plan decodes.
static constexpr int64_t kPerProduct = 2;
static constexpr int64_t kPerPlainWeight = 2;

static bool isZero(Value tile) { return getSplat(tile) == 0.0; }

namespace {

/// Products of weights that are made by the same steps, each of which adds to
/// the accumulators of the one before.
struct Run {
  SmallVector<DotOp> dots;
  SmallVector<ScaledWeights> weights;

  ArrayRef<RowStep> getSteps() const { return weights.front().steps; }
  DotOp getLast() const { return dots.back(); }
};

/// Takes the steps of a run on its accumulators.
class RunFolder {
public:
  explicit RunFolder(const Run &run)
      : run(run), builder(run.getLast()), loc(run.getLast().getLoc()),
        type(run.getLast().getType()) {}

  void fold() {
    Value accumulators = multiply([&](const ScaledWeights &weights, DotOp dot) {
      return buildBase(weights, dot);
    });
    ArrayRef<RowStep> steps = run.getSteps();
    for (const RowStep &step : steps.drop_back())
      accumulators = take(step, accumulators);
    Value result = finish(steps.back(), accumulators);
    for (DotOp dot : llvm::reverse(run.dots)) {
      Value weights = dot.getA();
      if (dot == run.getLast())
        dot.getResult().replaceAllUsesWith(result);
      dot.erase();
      eraseUnused(weights);
    }
  }

  bool hasSumsOfX() const { return bool(sumsOfX); }

private:
  /// The accumulators of all products, begun with zeros, for other operands a.
  Value multiply(function_ref<Value(const ScaledWeights &, DotOp)> getOperand) {
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(type.getElementType(), 0));
    Value accumulators = SplatOp::create(builder, loc, type, zero);
    for (auto [weights, product] : llvm::zip_equal(run.weights, run.dots)) {
      DotOp dot = product;
      accumulators =
          DotOp::create(builder, dot.getLoc(), getOperand(weights, dot),
                        dot.getB(), accumulators);
    }
    return accumulators;
  }

  /// What the steps begin with, in the type of the product.
  Value buildBase(const ScaledWeights &weights, DotOp dot) {
    if (weights.base.getType() == dot.getA().getType())
      return weights.base;
    return CastOp::create(builder, dot.getLoc(), dot.getA().getType(),
                          UnpackOp(weights.codes).getCodes());
  }

  Value getSumsOfX() {
    if (!sumsOfX)
      sumsOfX = multiply([&](const ScaledWeights &, DotOp dot) -> Value {
        TileType ones = dot.getA().getType();
        Value one = arith::ConstantOp::create(
            builder, loc, builder.getFloatAttr(ones.getElementType(), 1));
        return SplatOp::create(builder, loc, ones, one);
      });
    return sumsOfX;
  }

  /// The numbers of a step as f32, for every element of the accumulators.
  Value spread(const RowStep &step) {
    Type f32 = builder.getF32Type();
    if (step.scalar) {
      Value scalar = step.scalar;
      if (scalar.getType() != f32)
        scalar = arith::ExtFOp::create(builder, loc, f32, scalar);
      return SplatOp::create(builder, loc, type, scalar);
    }
    Value column = step.column;
    auto held = cast<TileType>(column.getType());
    if (!held.getElementType().isF32())
      column = CastOp::create(
          builder, loc, TileType::get(type.getContext(), f32, held.getLayout()),
          column);
    Layout needed = *reduce(type.getLayout(), {1}, /*keepDims=*/true);
    if (!(held.getLayout() == needed))
      column = ConvertLayoutOp::create(
          builder, loc, TileType::get(type.getContext(), f32, needed), column);
    return BroadcastOp::create(builder, loc, type, column);
  }

  Value take(const RowStep &step, Value accumulators) {
    Value numbers = spread(step);
    switch (step.kind) {
    case RowStep::Multiply:
      return MulOp::create(builder, loc, accumulators, numbers);
    case RowStep::Add:
      return FmaOp::create(builder, loc, numbers, getSumsOfX(), accumulators);
    case RowStep::Subtract:
      return SubOp::create(builder, loc, accumulators,
                           MulOp::create(builder, loc, numbers, getSumsOfX()));
    }
    llvm_unreachable("all kinds are there");
  }

  /// The last step, and the sum with what the products are added to.
  Value finish(const RowStep &step, Value accumulators) {
    Value addend = DotOp(run.dots.front()).getC();
    if (isZero(addend))
      return take(step, accumulators);
    if (step.kind == RowStep::Multiply)
      return FmaOp::create(builder, loc, spread(step), accumulators, addend);
    return AddOp::create(builder, loc, addend, take(step, accumulators));
  }

  static void eraseUnused(Value tile) {
    llvm::SetVector<Operation *> pending;
    pending.insert(tile.getDefiningOp());
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      if (!op->use_empty() || !isMemoryEffectFree(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp())
          pending.insert(maker);
      op->erase();
    }
  }

  const Run &run;
  OpBuilder builder;
  Location loc;
  TileType type;
  Value sumsOfX;
};

struct FoldScales : lowlp::impl::FoldScalesBase<FoldScales> {
  using Base::Base;

  void runOnOperation() override {
    if (when != "auto" && when != "always") {
      getOperation().emitError("when must be auto or always, but is ") << when;
      return signalPassFailure();
    }
    bool isAllowed = getOperation().getScheduleOrDefault().getReassociate();
    for (const Run &run : findRuns()) {
      std::string reason = explainStay(run);
      // Who does not allow it is told where it would be of use.
      if (reason.empty() && !isAllowed)
        reason = "the kernel's schedule does not say reassociate";
      else if (!isAllowed)
        continue;
      if (!reason.empty()) {
        ++numDeclined;
        LDBG() << "not folded: " << reason;
        remarkDeclined(run.getLast(), DEBUG_TYPE, "fold",
                       [&] { return reason; });
        continue;
      }
      numFolded += run.dots.size();
      remarkDone(run.getLast(), DEBUG_TYPE, "fold", [&] {
        return std::to_string(run.getSteps().size()) +
               " steps from codes to weights are taken on the accumulators";
      });
      RunFolder folder(run);
      folder.fold();
      if (folder.hasSumsOfX())
        ++numSumsOfX;
    }
  }

private:
  /// All products of codes that are not taken as they are.
  std::vector<Run> findRuns() {
    std::vector<Run> runs;
    getOperation().walk([&](DotOp dot) {
      ScaledWeights weights = getScaledWeights(dot.getA());
      if (!weights.codes || (weights.steps.empty() && weights.obstacle.empty()))
        return;
      if (!runs.empty() && continues(runs.back(), dot, weights)) {
        runs.back().dots.push_back(dot);
        runs.back().weights.push_back(weights);
      } else {
        runs.push_back({{dot}, {weights}});
      }
    });
    return runs;
  }

  static bool continues(const Run &run, DotOp dot,
                        const ScaledWeights &weights) {
    DotOp before = run.getLast();
    return dot.getC() == before.getResult() && before->hasOneUse() &&
           before->getBlock() == dot->getBlock() &&
           haveSameSteps(run.weights.back(), weights);
  }

  /// Why a run stays as it is; empty if it is folded.
  std::string explainStay(const Run &run) {
    const ScaledWeights &weights = run.weights.front();
    DotOp dot = run.getLast();
    if (!weights.obstacle.empty())
      return weights.obstacle;
    if (dot.getNumSlices() != 1)
      return "the product has slices, whose rows may have numbers of their own";
    Type element = dot.getA().getType().getElementType();
    bool isCast = weights.base.getType() != dot.getA().getType();
    if (isCast &&
        (!isCastOfCodes(weights.base) || !areExact({weights.codes}, element)))
      return "the type of the product does not hold the weights before they "
             "are scaled";
    if (when == "always")
      return "";
    int64_t folded = costOnAccumulators(run), kept = costOnWeights(run);
    if (folded < kept)
      return "";
    return "on the accumulators the scales cost " + std::to_string(folded) +
           " instructions of a thread, on the weights " + std::to_string(kept);
  }

  /// What the steps cost on the accumulators: an instruction for each, and the
  /// sums of x.
  static int64_t costOnAccumulators(const Run &run) {
    DotOp last = run.getLast();
    int64_t perStep = last.getType().getLayout().numLocals();
    int64_t cost = perStep * run.getSteps().size();
    if (llvm::all_of(run.getSteps(), [](const RowStep &step) {
          return step.kind == RowStep::Multiply;
        }))
      return cost;
    for (DotOp dot : run.dots)
      cost += kPerProduct * dot.getB().getType().getLayout().numLocals() / 4;
    return cost;
  }

  /// What they cost on the weights: by a plan an instruction for two, and else
  /// one for each or, of those that are looked up in pairs, for two.
  static int64_t costOnWeights(const Run &run) {
    int64_t cost = 0;
    for (auto [weights, dot] : llvm::zip_equal(run.weights, run.dots)) {
      DotOp product = dot;
      int64_t count = product.getA().getType().getLayout().numLocals();
      int64_t steps = run.getSteps().size();
      if (getWeights(Product(product)).scales)
        cost += count / 2;
      else if (weights.base.getDefiningOp<LookupOp>())
        cost += steps * count / 2;
      else
        cost += count * (kPerPlainWeight + steps);
    }
    return cost;
  }
};
} // namespace
