//===- RowConstants.cpp - a tile of constants, one for each 8 rows --------===//
//
// What decode plans leave for accumulators: powers of two and offsets by row.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

namespace {

struct RowConstantsPattern : OpConversionPattern<RowConstantsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowConstantsOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    const Layout &layout = op.getTile().getType().getLayout();
    ArrayRef<float> values = op.getValues();
    auto count = static_cast<int64_t>(values.size());
    bool isInteger = op.getTile().getType().getElementType().isInteger();
    auto constant = [&](float value) {
      return getConstant(rewriter, loc, value, isInteger);
    };
    Value threadRow;
    SmallVector<Value> elements;
    for (int64_t local = 0; local < layout.numLocals(); ++local) {
      int64_t first = layout.evaluate(0, local)[0] / kRows % count;
      bool isUniform = true;
      for (int64_t thread = 1; thread < layout.numThreads(); ++thread)
        isUniform &=
            values[layout.evaluate(thread, local)[0] / kRows % count] ==
            values[first];
      if (isUniform) {
        elements.push_back(constant(values[first]));
        continue;
      }
      if (!threadRow)
        threadRow = buildThreadPart(rewriter, loc, layout, 0);
      elements.push_back(select(rewriter, loc, threadRow,
                                layout.evaluate(0, local)[0], values,
                                isInteger));
    }
    rewriter.replaceOp(
        op,
        vector::FromElementsOp::create(
            rewriter, loc, getRegisterType(op.getTile().getType()), elements));
    return success();
  }

private:
  static constexpr int64_t kRows = 8;

  static Value getConstant(OpBuilder &builder, Location loc, float value,
                           bool isInteger) {
    TypedAttr attribute = builder.getF32FloatAttr(value);
    if (isInteger)
      attribute = builder.getI32IntegerAttr(static_cast<int32_t>(value));
    return arith::ConstantOp::create(builder, loc, attribute);
  }

  /// The value for the row `threadRow + localRow`.
  static Value select(OpBuilder &builder, Location loc, Value threadRow,
                      int64_t localRow, ArrayRef<float> values,
                      bool isInteger) {
    auto integer = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc,
                                       builder.getI32IntegerAttr(value));
    };
    Value row =
        arith::AddIOp::create(builder, loc, threadRow, integer(localRow));
    Value part = arith::DivUIOp::create(builder, loc, row, integer(kRows));
    Value index = arith::RemUIOp::create(
        builder, loc, part, integer(static_cast<int64_t>(values.size())));
    Value result;
    for (auto [number, value] : llvm::enumerate(values)) {
      Value one = getConstant(builder, loc, value, isInteger);
      if (!result) {
        result = one;
        continue;
      }
      Value isIt =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index,
                                integer(static_cast<int64_t>(number)));
      result = arith::SelectOp::create(builder, loc, isIt, one, result);
    }
    return result;
  }
};

} // namespace

void lowlp::populateRowConstantsPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<RowConstantsPattern>(converter, patterns.getContext());
}
