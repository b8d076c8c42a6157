//===- Reduce.cpp - a tile combined along one dimension -------------------===//
//
// Example: sums of the rows of local(2, 1).spatial(8, 4).local(1, 2). A thread
// holds 2 neighbours of each of 2 rows, and a row lies in 4 threads, whose
// numbers differ in their 2 low bits:
//
//   within the thread     v0 + v1 | v2 + v3
//   lanes that differ by 1, then by 2: exchange, and add what came
//
// Both lanes of an exchange add the same two numbers, so all lanes end with the
// same bits. A digit of the thread index that the dimension owns, of extent e
// and with s threads below it, lies within a warp exactly when s * e divides
// 32; e and s are then powers of two. What is spread over several warps has
// been taken apart before, by lowlp-expand-exchanges.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Layout/WarpConversion.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <map>

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWarpThreads = 32;

namespace {

/// A digit of the thread index along which values are combined.
struct ThreadSpan {
  int64_t stride, extent;
};

} // namespace

/// The digits of the thread index that belong to the dimension, innermost
/// first.
static SmallVector<ThreadSpan> getThreadSpans(const Layout &layout,
                                              int64_t dim) {
  SmallVector<ThreadSpan> spans;
  int64_t stride = 1;
  for (const Digit &digit : llvm::reverse(layout.threadDigits())) {
    if (!digit.isReplica() && layout.modes()[digit.mode].dim == dim)
      spans.push_back({stride, digit.extent});
    stride *= digit.extent;
  }
  return spans;
}

LogicalResult lowlp::verifyReductions(Operation *root) {
  bool allFit = true;
  root->walk([&](ReduceOp op) {
    const Layout &layout = op.getSource().getType().getLayout();
    if (!splitAcrossWarps(layout, static_cast<int64_t>(op.getDim())))
      return;
    op.emitOpError("dimension ")
        << op.getDim() << " of '" << str(layout)
        << "' is spread over several warps; run lowlp-expand-exchanges first";
    allFit = false;
  });
  return success(allFit);
}

/// For each local of the source the local of the result that it goes into,
/// which is the same in every thread.
static SmallVector<int64_t> getTargets(const Layout &layout, int64_t dim) {
  Layout result = *reduce(layout, {dim}, /*keepDims=*/true);
  std::map<std::vector<int64_t>, int64_t> places;
  for (int64_t local = 0; local < result.numLocals(); ++local)
    places[result.evaluate(0, local)] = local;
  SmallVector<int64_t> targets;
  for (int64_t local = 0; local < layout.numLocals(); ++local) {
    std::vector<int64_t> index = layout.evaluate(0, local);
    index[dim] = 0;
    targets.push_back(places.at(index));
  }
  return targets;
}

namespace {

struct ReducePattern : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    const Layout &layout = op.getSource().getType().getLayout();
    auto dim = static_cast<int64_t>(op.getDim());
    SmallVector<Value> sums(op.getType().getNumLocals());
    TileType source = op.getSource().getType();
    bool isInteger = isWideInteger(source.getElementType());
    SmallVector<Value> values =
        isInteger ? unpackIntegers(rewriter, loc, source, adaptor.getSource())
                  : extractAsF32(rewriter, loc, adaptor.getSource());
    for (auto [value, target] :
         llvm::zip_equal(values, getTargets(layout, dim)))
      sums[target] =
          sums[target] ? combine(rewriter, op, sums[target], value) : value;
    for (ThreadSpan span : getThreadSpans(layout, dim))
      for (int64_t distance = span.stride; distance < span.stride * span.extent;
           distance *= 2)
        for (Value &sum : sums)
          sum = combine(rewriter, op, sum,
                        exchange(rewriter, loc, sum, distance));
    Value result = isInteger ? packIntegers(rewriter, loc, op.getType(), sums)
                             : packFromF32(rewriter, loc,
                                           getRegisterType(op.getType()), sums);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static Value combine(OpBuilder &builder, ReduceOp op, Value a, Value b) {
    switch (op.getKind()) {
    case ReduceKind::Add:
      return make<arith::AddFOp, arith::AddIOp, arith::AddIOp>(builder, op, a,
                                                               b);
    case ReduceKind::Max:
      return make<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(builder,
                                                                     op, a, b);
    case ReduceKind::Min:
      return make<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(builder,
                                                                     op, a, b);
    }
    llvm_unreachable("unknown kind of reduction");
  }

  template <typename FloatOp, typename SignedOp, typename UnsignedOp>
  static Value make(OpBuilder &builder, ReduceOp op, Value a, Value b) {
    Location loc = getNamedLoc(op);
    Type element = op.getType().getElementType();
    if (element.isSignedInteger())
      return SignedOp::create(builder, loc, a, b);
    if (element.isUnsignedInteger())
      return UnsignedOp::create(builder, loc, a, b);
    return FloatOp::create(builder, loc, a, b);
  }

  /// The value of the lane whose number differs by the bit `distance`.
  static Value exchange(OpBuilder &builder, Location loc, Value value,
                        int64_t distance) {
    return gpu::ShuffleOp::create(
               builder, loc, value, static_cast<int32_t>(distance),
               static_cast<int32_t>(kWarpThreads), gpu::ShuffleMode::XOR)
        .getShuffleResult();
  }
};

} // namespace

void lowlp::populateReducePatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<ReducePattern>(converter, patterns.getContext());
}
