//===- FloatSums.cpp - lowlp-float-sums -----------------------------------===//
//
// A f32 of 1.5 * 2^23 has one bit for each integer up to 2^22 away. So the bits
// of an i32 that began as the bits of that number are the number plus what was
// added:
//
//   i32   0x4B400000 + sum
//   f32   12582912.0 + sum      the same bits, where |sum| < 2^22
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
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

/// The zeros to which products are added that come to `sum`, which nothing else
/// uses; or why there are none.
static Result<SplatOp> findZeros(Value sum) {
  int64_t largest = 0;
  for (Value at = sum;; at = at.getDefiningOp<DotOp>().getC()) {
    if (auto splat = at.getDefiningOp<SplatOp>();
        splat && at != sum && matchPattern(splat.getValue(), m_Zero()))
      return splat;
    auto dot = at.getDefiningOp<DotOp>();
    if (!dot)
      return Error{"the products are added to other sums"};
    if (!at.hasOneUse())
      return Error{"sums of the products are used elsewhere too"};
    std::optional<int64_t> more = getLargestSum(dot);
    if (!more)
      return Error{"the products are not of bytes"};
    largest += *more;
    if (largest >= kMostSum)
      return Error{"sums may come to " + std::to_string(largest) +
                   ", which is 2^22 or more"};
  }
}

namespace {
struct FloatSums : lowlp::impl::FloatSumsBase<FloatSums> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([&](CastOp op) {
      if (!op.getSource().getDefiningOp<DotOp>() ||
          !op.getType().getElementType().isF32())
        return;
      Result<SplatOp> zeros = findZeros(op.getSource());
      if (zeros)
        return replace(op, *zeros);
      LDBG() << op->getName() << " stays as it is: " << zeros.error();
      remarkDeclined(op, DEBUG_TYPE, "float-sums",
                     [&] { return zeros.error(); });
    });
  }

private:
  void replace(CastOp op, SplatOp zeros) {
    DotOp first = op.getSource().getDefiningOp<DotOp>();
    while (auto before = first.getC().getDefiningOp<DotOp>())
      first = before;
    OpBuilder builder(first);
    Value bits = arith::ConstantOp::create(
        builder, first.getLoc(),
        builder.getIntegerAttr(zeros.getValue().getType(), kBits));
    first.getCMutable().assign(
        SplatOp::create(builder, first.getLoc(), zeros.getType(), bits));
    builder.setInsertionPoint(op);
    Value value = arith::ConstantOp::create(builder, op.getLoc(),
                                            builder.getF32FloatAttr(kValue));
    Value seen =
        ViewOp::create(builder, op.getLoc(), op.getType(), op.getSource());
    Value sum = SubOp::create(
        builder, op.getLoc(), seen,
        SplatOp::create(builder, op.getLoc(), op.getType(), value));
    op.getResult().replaceAllUsesWith(sum);
    op.erase();
    if (zeros->use_empty())
      zeros->erase();
    ++numSums;
  }
};
} // namespace
