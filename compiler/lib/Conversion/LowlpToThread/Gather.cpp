//===- Gather.cpp - accesses at indices read on the device ----------------===//
//
// A gather is a load in which, along one dimension, what a thread holds of the
// index tile takes the place of its digits (TilePositions). A number for all
// threads is a tile of one element that each of them holds.
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"
#include "TilePositions.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

/// The i32 `value`, an integer of type `type`, as an index.
static Value toIndex(OpBuilder &builder, Location loc, Type type, Value value) {
  Type index = builder.getIndexType();
  if (type.isUnsignedInteger())
    return arith::IndexCastUIOp::create(builder, loc, index, value);
  return arith::IndexCastOp::create(builder, loc, index, value);
}

SmallVector<Value> lowlp::unpackIndices(OpBuilder &builder, Location loc,
                                        TileType indices, Value registers) {
  SmallVector<Value> values = unpackIntegers(builder, loc, indices, registers);
  for (Value &value : values)
    value = toIndex(builder, loc, indices.getElementType(), value);
  return values;
}

/// The index of each local element of `tile` along dimension `dim` of it.
static GatheredDim getGathered(OpBuilder &builder, Location loc, TileType tile,
                               int64_t viewRank, int64_t dim, TileType indices,
                               Value registers) {
  SmallVector<Value> values = unpackIndices(builder, loc, indices, registers);
  Result<std::vector<int64_t>> locals =
      broadcastLocals(indices.getLayout(), tile.getLayout());
  assert(locals && "the op's verifier has found the registers");
  GatheredDim gathered{viewRank - tile.getRank() + dim, {}};
  for (int64_t local : *locals)
    gathered.indices.push_back(values[local]);
  return gathered;
}

void lowlp::planGatherWidths(Operation *root, AccessWidths &widths) {
  auto find = [&](Value view, OperandRange offsets, TileType tile,
                  TileType indices, int64_t dim, bool isInBounds) {
    const Layout &layout = tile.getLayout();
    // Neighbours have one index where it does not depend on the last dimension.
    bool isShared = dim != tile.getRank() - 1 && indices.getShape().back() == 1;
    int64_t run = isShared ? layout.contiguousLocals(layout.rank() - 1) : 1;
    int64_t viewRank = cast<GlobalType>(view.getType()).getRank();
    return findGlobalWidth(view, offsets, layout, run, isInBounds,
                           viewRank - tile.getRank() + dim);
  };
  root->walk([&](GatherGlobalOp op) {
    widths[op] = find(op.getSource(), op.getOffsets(), op.getTile().getType(),
                      op.getIndices().getType(),
                      static_cast<int64_t>(op.getDim()), op.getInBounds());
  });
  root->walk([&](ScatterGlobalOp op) {
    widths[op] = find(op.getDestination(), op.getOffsets(),
                      op.getTile().getType(), op.getIndices().getType(),
                      static_cast<int64_t>(op.getDim()), op.getInBounds());
  });
}

namespace {

struct GatherPattern : OpConversionPattern<GatherGlobalOp> {
  GatherPattern(const TypeConverter &converter, MLIRContext *context,
                const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(GatherGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    GlobalPositions positions(
        rewriter, loc, op.getSource().getDefiningOp<ViewGlobalOp>(),
        adaptor.getOffsets(), tile.getLayout(),
        getGathered(rewriter, loc, tile, op.getSource().getType().getRank(),
                    static_cast<int64_t>(op.getDim()),
                    op.getIndices().getType(), adaptor.getIndices()));
    rewriter.replaceOp(op, emitTileLoad(rewriter, loc, adaptor.getSource(),
                                        tile, widths.lookup(op), positions,
                                        op.getInBounds()));
    return success();
  }

  const AccessWidths &widths;
};

struct ScatterPattern : OpConversionPattern<ScatterGlobalOp> {
  ScatterPattern(const TypeConverter &converter, MLIRContext *context,
                 const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(ScatterGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    GlobalPositions positions(
        rewriter, loc, op.getDestination().getDefiningOp<ViewGlobalOp>(),
        adaptor.getOffsets(), tile.getLayout(),
        getGathered(rewriter, loc, tile,
                    op.getDestination().getType().getRank(),
                    static_cast<int64_t>(op.getDim()),
                    op.getIndices().getType(), adaptor.getIndices()));
    emitTileStore(rewriter, loc, adaptor.getTile(), adaptor.getDestination(),
                  tile, widths.lookup(op), positions, op.getInBounds());
    rewriter.eraseOp(op);
    return success();
  }

  const AccessWidths &widths;
};

struct LoadScalarPattern : OpConversionPattern<LoadScalarOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadScalarOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Layout one = Layout::local({1});
    Type element;
    std::unique_ptr<TilePositions> positions;
    if (auto shared = dyn_cast<SharedType>(op.getSource().getType())) {
      element = shared.getElementType();
      positions = std::make_unique<SharedPositions>(
          rewriter, loc, shared.getLayout(), adaptor.getOffsets(), one);
    } else {
      auto view = op.getSource().getDefiningOp<ViewGlobalOp>();
      element = view.getView().getType().getElementType();
      positions = std::make_unique<GlobalPositions>(rewriter, loc, view,
                                                    adaptor.getOffsets(), one);
    }
    auto tile = TileType::get(getContext(), element, one);
    Value registers = emitTileLoad(rewriter, loc, adaptor.getSource(), tile,
                                   /*width=*/1, *positions, op.getInBounds());
    if (isa<IntegerType>(element))
      rewriter.replaceOp(op,
                         unpackIndices(rewriter, loc, tile, registers).front());
    else
      rewriter.replaceOp(op, extractAsF32(rewriter, loc, registers).front());
    return success();
  }
};

} // namespace

void lowlp::populateGatherPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns,
                                   const AccessWidths &widths) {
  MLIRContext *context = patterns.getContext();
  patterns.add<GatherPattern, ScatterPattern>(converter, context, widths);
  patterns.add<LoadScalarPattern>(converter, context);
}
