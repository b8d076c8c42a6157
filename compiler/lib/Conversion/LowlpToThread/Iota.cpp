//===- Iota.cpp - the indices of a tile's elements ------------------------===//
//
// An index along a dimension is the sum of what the digits of the thread index
// and those of the local index contribute; the latter are constants.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

Value lowlp::buildThreadPart(OpBuilder &builder, Location loc,
                             const Layout &layout, int64_t dim) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  Value sum = index(0);
  int64_t below = layout.numThreads();
  for (const Digit &digit : layout.threadDigits()) {
    below /= digit.extent;
    if (digit.isReplica() || layout.modes()[digit.mode].dim != dim)
      continue;
    Value value = arith::DivUIOp::create(builder, loc, thread, index(below));
    value = arith::RemUIOp::create(builder, loc, value, index(digit.extent));
    value = arith::MulIOp::create(builder, loc, value,
                                  index(layout.modes()[digit.mode].stride));
    sum = arith::AddIOp::create(builder, loc, sum, value);
  }
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), sum);
}

Value lowlp::buildIsFirstOwner(OpBuilder &builder, Location loc,
                               const Layout &layout) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value thread, isFirst;
  int64_t below = layout.numThreads();
  for (const Digit &digit : layout.threadDigits()) {
    below /= digit.extent;
    if (!digit.isReplica())
      continue;
    if (!thread)
      thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
    Value value = arith::DivUIOp::create(builder, loc, thread, index(below));
    value = arith::RemUIOp::create(builder, loc, value, index(digit.extent));
    Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        value, index(0));
    isFirst =
        isFirst
            ? arith::AndIOp::create(builder, loc, isFirst, first).getResult()
            : first;
  }
  return isFirst;
}

namespace {

struct IotaPattern : OpConversionPattern<IotaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(IotaOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    const Layout &layout = op.getType().getLayout();
    auto dim = static_cast<int64_t>(op.getDim());
    Value threadPart = buildThreadPart(rewriter, loc, layout, dim);
    bool isInteger = isWideInteger(op.getType().getElementType());
    if (!isInteger)
      threadPart = arith::SIToFPOp::create(rewriter, loc, rewriter.getF32Type(),
                                           threadPart);
    SmallVector<Value> indices;
    for (int64_t i = 0; i < layout.numLocals(); ++i) {
      int64_t part = layout.evaluate(0, i)[dim];
      if (isInteger) {
        Value constant = arith::ConstantOp::create(
            rewriter, loc,
            rewriter.getI32IntegerAttr(static_cast<int32_t>(part)));
        indices.push_back(
            arith::AddIOp::create(rewriter, loc, threadPart, constant));
        continue;
      }
      auto local = static_cast<float>(part);
      Value constant = arith::ConstantOp::create(
          rewriter, loc, rewriter.getF32FloatAttr(local));
      indices.push_back(
          arith::AddFOp::create(rewriter, loc, threadPart, constant));
    }
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, getRegisterType(op.getType()), indices);
    return success();
  }
};

} // namespace

void lowlp::populateIotaPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<IotaPattern>(converter, patterns.getContext());
}
