//===- FloatSums.cpp - lowlp-float-sums -----------------------------------===//
//
// Around 1.5 * 2^23, up to 2^22 away, numbers of f32 are 1 apart. So an i32
// that began with the bits of that number has the bits of the number plus what
// was added:
//
//   i32   0x4B400000 + sum
//   f32   12582912.0 + sum      the same bits, where |sum| < 2^22
//
//===----------------------------------------------------------------------===//
#include "CodedProducts.h"
#include "PassRemarks.h"
#include "ScaledColumns.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-float-sums"

namespace lowlp {
#define GEN_PASS_DEF_FLOATSUMS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kMostSum = 1 << 22;
static constexpr int32_t kBits = 0x4B400000;
static constexpr float kValue = 12582912.0F;

/// The largest absolute value of an 8-bit integer type; nothing of others.
static std::optional<int64_t> getLargest(Type type) {
  if (type.isSignedInteger(8))
    return 128;
  if (type.isUnsignedInteger(8))
    return 255;
  return std::nullopt;
}

/// The largest absolute value that a product adds to its accumulators.
static std::optional<int64_t> getLargestSum(DotOp dot) {
  TileType typeA = dot.getA().getType();
  std::optional<int64_t> a = getLargest(typeA.getElementType());
  std::optional<int64_t> b = getLargest(dot.getB().getType().getElementType());
  if (!a || !b)
    return std::nullopt;
  return *a * *b * (typeA.getShape()[1] / dot.getNumSlices());
}

/// The first of the products that add up to `last`, which is added to zeros,
/// where nothing else uses their sums; or why there is none.
static Result<DotOp> findFirst(DotOp last) {
  int64_t largest = 0;
  for (DotOp dot = last; dot; dot = dot.getC().getDefiningOp<DotOp>()) {
    if (!dot.getResult().hasOneUse())
      return Error{"sums of the products are used elsewhere too"};
    std::optional<int64_t> more = getLargestSum(dot);
    if (!more)
      return Error{"the products are not of bytes"};
    largest += *more;
    if (largest >= kMostSum)
      return Error{"sums may come to " + std::to_string(largest) +
                   " or more, which is not less than 2^22"};
    if (getSplat(dot.getC()) == 0)
      return dot;
  }
  return Error{"the products are not added to zeros"};
}

namespace {
struct FloatSums : lowlp::impl::FloatSumsBase<FloatSums> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([&](CastOp op) {
      auto last = op.getSource().getDefiningOp<DotOp>();
      if (!last || !op.getType().getElementType().isF32())
        return;
      Result<DotOp> first = findFirst(last);
      if (first)
        return replace(op, *first);
      LDBG() << op->getName() << " stays as it is: " << first.error();
      remarkDeclined(op, DEBUG_TYPE, "float-sums",
                     [&] { return first.error(); });
    });
  }

private:
  void replace(CastOp op, DotOp first) {
    OpBuilder builder(first);
    auto zeros = first.getC().getDefiningOp<SplatOp>();
    first.getCMutable().assign(
        buildSplat(builder, first.getLoc(), zeros.getType(), kBits));
    builder.setInsertionPoint(op);
    Value seen =
        ViewOp::create(builder, op.getLoc(), op.getType(), op.getSource());
    Value value = buildSplat(builder, op.getLoc(), op.getType(), kValue);
    Value sum = SubOp::create(builder, op.getLoc(), seen, value);
    op.getResult().replaceAllUsesWith(sum);
    op.erase();
    if (zeros->use_empty())
      zeros->erase();
    ++numSums;
  }
};
} // namespace
