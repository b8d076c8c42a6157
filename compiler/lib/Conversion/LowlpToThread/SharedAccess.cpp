//===- SharedAccess.cpp - accesses of shared memory -----------------------===//
//
// An access may move v elements, v consecutive ones along the last dimension,
// when both layouts have runs of v along it, aligned to v, they fill 1, 2, 4, 8
// or 16 bytes, and v divides the last offset. Then they are neighbours in
// shared memory, at a multiple of v, and lie inside of the shared tile together
// or not at all, because v divides its last extent.
//
// Where matrix instructions can do the access (MatrixAccess) they do, unless
// some of the tile lies outside, which all threads of the block find alike:
//
//   if every offset is at most the extent less the tile's:  matrix instructions
//   else:                                                   guarded accesses
//
//===----------------------------------------------------------------------===//
#include "MatrixAccess.h"
#include "SharedMemory.h"
#include "TileBounds.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Layout/Scratch.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

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

/// Whether the whole tile lies in `shared` at `offsets`, as an i1.
static Value isTileInside(OpBuilder &builder, Location loc, SharedType shared,
                          ValueRange offsets, TileType tile) {
  Value inside;
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    Value largest = arith::ConstantIndexOp::create(
        builder, loc,
        getLargestOffset(shared.getShape(), tile.getShape(), dim));
    // Unsigned, so that a negative offset is outside too.
    Value test = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ule,
                                       offset, largest);
    inside = inside ? arith::AndIOp::create(builder, loc, inside, test) : test;
  }
  return inside;
}

/// Emits `byMatrices` where the tile lies inside, else `byElements`.
static void emitChoice(ConversionPatternRewriter &rewriter, Location loc,
                       Value isInside, TypeRange results,
                       llvm::function_ref<SmallVector<Value>()> byMatrices,
                       llvm::function_ref<SmallVector<Value>()> byElements,
                       SmallVector<Value> &values) {
  auto branch = scf::IfOp::create(rewriter, loc, results, isInside,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(rewriter, loc, byMatrices());
  rewriter.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(rewriter, loc, byElements());
  values.assign(branch.getResults().begin(), branch.getResults().end());
}

/// An access of shared memory, by matrix instructions where it can.
template <typename AccessOp>
struct SharedAccessPattern : OpConversionPattern<AccessOp> {
  SharedAccessPattern(const TypeConverter &converter, MLIRContext *context,
                      const AccessWidths &widths,
                      const MatrixAccesses &matrices)
      : OpConversionPattern<AccessOp>(converter, context), widths(widths),
        matrices(matrices) {}

  /// The registers that the access results in.
  SmallVector<Value> emitAccess(
      AccessOp op, SharedType shared, ValueRange offsets,
      ConversionPatternRewriter &rewriter, TypeRange results,
      llvm::function_ref<SmallVector<Value>(const MatrixAccess &)> byMatrices,
      llvm::function_ref<SmallVector<Value>()> byElements) const {
    Location loc = getNamedLoc(op);
    auto found = matrices.find(op);
    if (found == matrices.end())
      return byElements();
    const MatrixAccess &access = found->second;
    TileType tile = op.getTile().getType();
    if (op.getInBounds())
      simt::AssertOp::create(rewriter, loc,
                             isTileInside(rewriter, loc, shared, offsets, tile),
                             kOutside);
    if (access.isInside)
      return byMatrices(access);
    SmallVector<Value> values;
    emitChoice(
        rewriter, loc, isTileInside(rewriter, loc, shared, offsets, tile),
        results, [&] { return byMatrices(access); }, byElements, values);
    return values;
  }

  const AccessWidths &widths;
  const MatrixAccesses &matrices;
};

struct LoadSharedPattern : SharedAccessPattern<LoadSharedOp> {
  using SharedAccessPattern::SharedAccessPattern;

  LogicalResult
  matchAndRewrite(LoadSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    SharedType shared = op.getSource().getType();
    auto byMatrices = [&](const MatrixAccess &access) -> SmallVector<Value> {
      return {emitMatrixLoad(rewriter, loc, adaptor.getSource(), tile,
                             shared.getLayout(), adaptor.getOffsets(), access)};
    };
    auto byElements = [&]() -> SmallVector<Value> {
      SharedPositions positions(rewriter, loc, shared.getLayout(),
                                adaptor.getOffsets(), tile.getLayout());
      return {emitTileLoad(rewriter, loc, adaptor.getSource(), tile,
                           widths.lookup(op), positions, op.getInBounds())};
    };
    rewriter.replaceOp(op, emitAccess(op, shared, adaptor.getOffsets(),
                                      rewriter, getRegisterType(tile),
                                      byMatrices, byElements));
    return success();
  }
};

struct StoreSharedPattern : SharedAccessPattern<StoreSharedOp> {
  using SharedAccessPattern::SharedAccessPattern;

  LogicalResult
  matchAndRewrite(StoreSharedOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    SharedType shared = op.getDestination().getType();
    auto byMatrices = [&](const MatrixAccess &access) -> SmallVector<Value> {
      emitMatrixStore(rewriter, loc, adaptor.getTile(),
                      adaptor.getDestination(), tile, shared.getLayout(),
                      adaptor.getOffsets(), access);
      return {};
    };
    auto byElements = [&]() -> SmallVector<Value> {
      SharedPositions positions(rewriter, loc, shared.getLayout(),
                                adaptor.getOffsets(), tile.getLayout());
      emitTileStore(rewriter, loc, adaptor.getTile(), adaptor.getDestination(),
                    tile, widths.lookup(op), positions, op.getInBounds());
      return {};
    };
    emitAccess(op, shared, adaptor.getOffsets(), rewriter, /*results=*/{},
               byMatrices, byElements);
    rewriter.eraseOp(op);
    return success();
  }
};

struct SynchronizePattern : OpConversionPattern<SynchronizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SynchronizeOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    emitBarrier(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateSharedPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns,
                                   const AccessWidths &widths,
                                   const MatrixAccesses &matrices,
                                   const SharedMemoryPlan &plan) {
  MLIRContext *context = patterns.getContext();
  patterns.add<AllocSharedPattern>(converter, context, plan);
  patterns.add<LoadSharedPattern, StoreSharedPattern>(converter, context,
                                                      widths, matrices);
  patterns.add<SynchronizePattern>(converter, context);
}
