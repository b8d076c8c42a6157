//===- SharedAccess.cpp - accesses of shared memory -----------------------===//
//
// An access may move v elements, v consecutive ones along the last dimension,
// when both layouts have runs of v along it, aligned to v, they fill 1, 2, 4, 8
// or 16 bytes, and v divides the last offset. Then they are neighbours in
// shared memory, at a multiple of v, and lie inside of the shared tile together
// or not at all, because v divides its last extent.
//
//===----------------------------------------------------------------------===//
#include "SharedMemory.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Layout/Scratch.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <numeric>

using namespace mlir;
using namespace lowlp;

int64_t lowlp::findSharedWidth(SharedType shared, OperandRange offsets,
                               TileType tile) {
  const SharedLayout &addresses = shared.getLayout();
  const Layout &layout = tile.getLayout();
  int64_t run = std::gcd(layout.contiguousLocals(layout.rank() - 1),
                         addresses.contiguousAddresses(addresses.rank() - 1));
  run = std::gcd(run, getPowerOf2Divisor(offsets.back()));
  return accessWidth(run, *getElementBits(shared.getElementType()));
}

void lowlp::planSharedAccessWidths(Operation *root, AccessWidths &widths) {
  root->walk([&](LoadSharedOp load) {
    widths[load] = findSharedWidth(load.getSource().getType(),
                                   load.getOffsets(), load.getTile().getType());
  });
  root->walk([&](StoreSharedOp store) {
    widths[store] =
        findSharedWidth(store.getDestination().getType(), store.getOffsets(),
                        store.getTile().getType());
  });
}

namespace {

struct AllocSharedPattern : OpConversionPattern<AllocSharedOp> {
  AllocSharedPattern(const TypeConverter &converter, MLIRContext *context,
                     const SharedMemoryPlan &plan)
      : OpConversionPattern(converter, context), plan(plan) {}

  LogicalResult
  matchAndRewrite(AllocSharedOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    Value address = simt::SharedMemoryOp::create(
        rewriter, getNamedLoc(op), type, plan.offsetBytes.lookup(op));
    rewriter.replaceOp(op, address);
    return success();
  }

  const SharedMemoryPlan &plan;
};

struct LoadSharedPattern : OpConversionPattern<LoadSharedOp> {
  LoadSharedPattern(const TypeConverter &converter, MLIRContext *context,
                    const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(LoadSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    SharedPositions positions(rewriter, loc,
                              op.getSource().getType().getLayout(),
                              adaptor.getOffsets(), tile.getLayout());
    rewriter.replaceOp(op, emitTileLoad(rewriter, loc, adaptor.getSource(),
                                        tile, widths.lookup(op), positions,
                                        op.getInBounds()));
    return success();
  }

  const AccessWidths &widths;
};

struct StoreSharedPattern : OpConversionPattern<StoreSharedOp> {
  StoreSharedPattern(const TypeConverter &converter, MLIRContext *context,
                     const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(StoreSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    SharedPositions positions(rewriter, loc,
                              op.getDestination().getType().getLayout(),
                              adaptor.getOffsets(), tile.getLayout());
    emitTileStore(rewriter, loc, adaptor.getTile(), adaptor.getDestination(),
                  tile, widths.lookup(op), positions, op.getInBounds());
    rewriter.eraseOp(op);
    return success();
  }

  const AccessWidths &widths;
};

struct SynchronizePattern : OpConversionPattern<SynchronizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SynchronizeOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    gpu::BarrierOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateSharedPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns,
                                   const AccessWidths &widths,
                                   const SharedMemoryPlan &plan) {
  MLIRContext *context = patterns.getContext();
  patterns.add<AllocSharedPattern>(converter, context, plan);
  patterns.add<LoadSharedPattern, StoreSharedPattern>(converter, context,
                                                      widths);
  patterns.add<SynchronizePattern>(converter, context);
}
