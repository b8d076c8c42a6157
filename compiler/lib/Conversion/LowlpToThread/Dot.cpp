//===- Dot.cpp - a block's product as its warps' matrix instructions ------===//
//
// DotPlan says which registers each instruction takes. Where they are
// neighbours in the order of the fragment they are a slice of the tile's
// vector, else they are gathered:
//
//   a.outer = column_local(2, 2)   registers 0 1 2 3
//   vector.extract_strided_slice a.outer = local(2, 2)          registers 0 2 1
//   3   vector.shuffle
//
// Products with one number are ColumnSums.
//
//===----------------------------------------------------------------------===//
#include "ColumnSums.h"
#include "LowlpToThread.h"
#include "RegisterGrid.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

/// The vector `tile` with `values` in the place of `registers`.
static Value scatter(OpBuilder &builder, Location loc, Value values, Value tile,
                     ArrayRef<int64_t> registers, int64_t size) {
  bool isSlice = registers[1] == registers[0] + 1;
  if (isSlice)
    return vector::InsertStridedSliceOp::create(
        builder, loc, values, tile, ArrayRef<int64_t>{registers[0] * size},
        ArrayRef<int64_t>{1});
  for (auto [position, index] : llvm::enumerate(registers)) {
    Value part = gatherRegisters(builder, loc, values,
                                 static_cast<int64_t>(position), size);
    tile = vector::InsertStridedSliceOp::create(builder, loc, part, tile,
                                                ArrayRef<int64_t>{index * size},
                                                ArrayRef<int64_t>{1});
  }
  return tile;
}

namespace {

struct DotPattern : OpConversionPattern<DotOp> {
  DotPattern(const TypeConverter &converter, MLIRContext *context,
             const DotPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(DotOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const SmallVector<DotStep> &steps = plans.find(op)->second;
    if (ColumnSums sums(op, steps); sums.isWorthwhile()) {
      rewriter.replaceOp(op, sums.build(rewriter, adaptor.getA(),
                                        adaptor.getB(), adaptor.getC()));
      return success();
    }
    Location loc = getNamedLoc(op);
    auto getMultiplicand = [&](Value tile, ArrayRef<int64_t> registers) {
      Type element = cast<VectorType>(tile.getType()).getElementType();
      return gatherRegisters(rewriter, loc, tile, registers,
                             32 / element.getIntOrFloatBitWidth());
    };
    constexpr int64_t kSumsPerRegister = 2;
    Value result = adaptor.getC();
    for (const DotStep &step : steps) {
      Value c =
          gatherRegisters(rewriter, loc, result, step.c, kSumsPerRegister);
      Value sum = simt::MmaOp::create(
          rewriter, loc, c.getType(), getMultiplicand(adaptor.getA(), step.a),
          getPackedType(op.getA()), getMultiplicand(adaptor.getB(), step.b),
          getPackedType(op.getB()), c);
      result = scatter(rewriter, loc, sum, result, step.c, kSumsPerRegister);
    }
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  /// What words of a tile hold; null where its registers say so themselves.
  static TypeAttr getPackedType(TypedValue<TileType> tile) {
    Type element = tile.getType().getElementType();
    return isPacked(element) ? TypeAttr::get(element) : TypeAttr();
  }

  const DotPlans &plans;
};

} // namespace

void lowlp::populateDotPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns,
                                const DotPlans &plans) {
  patterns.add<DotPattern>(converter, patterns.getContext(), plans);
}
