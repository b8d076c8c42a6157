//===- Dot.cpp - a block's product as its warps' matrix instructions ------===//
//
// Each operand's layout is divided by the fragment of the instruction:
//
//   a = outerA . fragmentA      outerA maps (warp, index of the fragment within
//   b = outerB . fragmentB      the warp's registers) to the fragment's place
//   c = outerC . fragmentC      in the tile
//
// For each fragment (m, n) of c and each step k a warp needs the fragments
// (m, k) of a and (k, n) of b. Registers cannot be indexed at run time, so they
// must have the same index in every warp. Steps go in increasing order of k.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

namespace {

// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
Layout getFragmentA() {
  return Layout::columnLocal({2, 2}) * Layout::spatial({8, 4}) *
         Layout::local({1, 2});
}
Layout getFragmentB() {
  return Layout::local({2, 1}) * Layout::columnSpatial({4, 8}) *
         Layout::local({2, 1});
}
Layout getFragmentC() {
  return Layout::local({2, 1}) * Layout::spatial({8, 4}) *
         Layout::local({1, 2});
}

} // namespace

/// The index at which every warp w holds fragment place(w) of `outer`.
static std::optional<int64_t>
findFragment(const Layout &outer,
             llvm::function_ref<std::vector<int64_t>(int64_t)> place) {
  for (int64_t i = 0; i < outer.numLocals(); ++i) {
    bool everywhere = true;
    for (int64_t w = 0; w < outer.numThreads() && everywhere; ++w)
      everywhere = outer.evaluate(w, i) == place(w);
    if (everywhere)
      return i;
  }
  return std::nullopt;
}

/// `layout` divided by `fragment`, or a diagnostic.
static FailureOr<Layout> divideByFragment(DotOp op, StringRef operand,
                                          const Layout &layout,
                                          const Layout &fragment) {
  Result<Layout> outer = divideRight(layout, fragment);
  if (outer)
    return *outer;
  return op.emitOpError("the layout of ")
         << operand << ", '" << str(layout)
         << "', is not made of the fragments of mma m16n8k16, '"
         << str(fragment) << "'";
}

/// All steps of the product, fragment by fragment of c.
static FailureOr<SmallVector<DotStep>> planSteps(DotOp op) {
  FailureOr<Layout> a = divideByFragment(
      op, "a", op.getA().getType().getLayout(), getFragmentA());
  FailureOr<Layout> b = divideByFragment(
      op, "b", op.getB().getType().getLayout(), getFragmentB());
  FailureOr<Layout> c = divideByFragment(
      op, "c", op.getC().getType().getLayout(), getFragmentC());
  if (failed(a) || failed(b) || failed(c))
    return failure();
  SmallVector<DotStep> steps;
  for (int64_t i = 0; i < c->numLocals(); ++i)
    for (int64_t k = 0; k < a->shape()[1]; ++k) {
      std::optional<int64_t> indexA = findFragment(*a, [&](int64_t warp) {
        return std::vector<int64_t>{c->evaluate(warp, i)[0], k};
      });
      std::optional<int64_t> indexB = findFragment(*b, [&](int64_t warp) {
        return std::vector<int64_t>{k, c->evaluate(warp, i)[1]};
      });
      if (!indexA || !indexB)
        return op.emitOpError("a warp lacks the fragment of ")
               << (indexA ? "b" : "a") << " at step " << k
               << " that it needs for fragment " << i << " of c";
      steps.push_back({*indexA, *indexB, i});
    }
  return steps;
}

FailureOr<DotPlans> lowlp::planDots(Operation *root) {
  DotPlans plans;
  bool allFit = true;
  root->walk([&](DotOp op) {
    FailureOr<SmallVector<DotStep>> steps = planSteps(op);
    if (succeeded(steps))
      plans[op] = std::move(*steps);
    else
      allFit = false;
  });
  if (!allFit)
    return failure();
  return plans;
}

namespace {

struct DotPattern : OpConversionPattern<DotOp> {
  DotPattern(const TypeConverter &converter, MLIRContext *context,
             const DotPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(DotOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    auto slice = [&](Value registers, int64_t fragment, int64_t size) -> Value {
      return vector::ExtractStridedSliceOp::create(
          rewriter, loc, registers, ArrayRef<int64_t>{fragment * size},
          ArrayRef<int64_t>{size}, ArrayRef<int64_t>{1});
    };
    Value result = adaptor.getC();
    for (const DotStep &step : plans.find(op)->second) {
      Value sum = simt::MmaOp::create(
          rewriter, loc, slice(adaptor.getA(), step.a, 8),
          slice(adaptor.getB(), step.b, 4), slice(result, step.c, 4));
      result = vector::InsertStridedSliceOp::create(
          rewriter, loc, sum, result, ArrayRef<int64_t>{step.c * 4},
          ArrayRef<int64_t>{1});
    }
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  const DotPlans &plans;
};

} // namespace

void lowlp::populateDotPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns,
                                const DotPlans &plans) {
  patterns.add<DotPattern>(converter, patterns.getContext(), plans);
}
