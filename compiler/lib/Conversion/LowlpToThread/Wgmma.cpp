//===- Wgmma.cpp - products of warpgroups ---------------------------------===//
//
// A block's product is one instruction for each 32 bytes of K and 64 rows of a
// warpgroup:
//
//   %f:2 = simt.wgmma_fence of %a, %c
//   %s0 = simt.wgmma %f#0[registers of step 0], b + 0 bytes, plus %f#1
//   %s1 = simt.wgmma %f#0[registers of step 1], b + 32 bytes, plus %s0
//
// Of slices of K the number of the thread says which one's b it takes.
//
// Accumulators in flight are a value for each 64 rows, in the order of the
// instruction's fragment, from the first product to the wait.
//
//===----------------------------------------------------------------------===//
#include "WgmmaPlan.h"

#include "LowlpToThread.h"
#include "RegisterGrid.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kAccumulatorsPerRegister = 2;
static constexpr int64_t kRowsPerGroup = 8;

namespace {

/// Where the parts of `b` begin that the instructions take.
class PartPositions {
public:
  PartPositions(ConversionPatternRewriter &rewriter, WgmmaOp op,
                ValueRange offsets)
      : rewriter(rewriter), loc(getNamedLoc(op)), op(op), offsets(offsets),
        // Groups of 8 rows begin where they would without a swizzle.
        addresses(
            *SharedLayout::plain(op.getB().getType().getLayout().layout())),
        extents(Layout::local({op.getType().getLayout().shape()[1],
                               op.getSliceK() / op.getElementsPerWord()})),
        positions(rewriter, loc, addresses, offsets, extents) {}

  /// What the CPU target checks of offsets.
  void emitChecks() {
    Value inside =
        arith::AndIOp::create(rewriter, loc, positions.isInside(0),
                              positions.isInside(extents.numLocals() - 1));
    simt::AssertOp::create(rewriter, loc, inside,
                           "a product takes what lies in the shared tile, but "
                           "the part of b reaches beyond");
    emitMultiple(offsets.drop_back().back(), kRowsPerGroup);
    emitMultiple(offsets.back(), op.getStepOfB());
  }

  /// The byte at which step `k` begins, as an i64: where the first column is
  /// known, that of the first step and a constant.
  Value getByte(int64_t k) {
    std::optional<int64_t> column =
        getConstantIntValue(OpFoldResult(op.getOffsets().back()));
    if (!column || !first)
      first = getByteOf(k);
    if (!column || k == 0)
      return first;
    int64_t columns = k * op.getStepOfB();
    int64_t elements = getPosition(*column + columns) - getPosition(*column);
    return arith::AddIOp::create(rewriter, loc, first,
                                 makeConstant(elements * getElementBytes()));
  }

private:
  int64_t getElementBytes() {
    return *getElementBits(op.getB().getType().getElementType()) / 8;
  }
  Value makeConstant(int64_t value) {
    return arith::ConstantIntOp::create(rewriter, loc, value, 64);
  }

  Value getByteOf(int64_t k) {
    Value position = positions.getElementPosition(k * op.getStepOfB());
    return arith::MulIOp::create(rewriter, loc, position,
                                 makeConstant(getElementBytes()));
  }

  /// What a column adds to the position of an element.
  int64_t getPosition(int64_t column) const {
    const Layout &layout = addresses.layout();
    int64_t position = 0, weight = 1;
    for (const Digit &digit : llvm::reverse(layout.localDigits())) {
      const Mode &mode = layout.modes()[digit.mode];
      if (mode.dim + 1 == layout.rank())
        position += column / mode.stride % mode.extent * weight;
      weight *= digit.extent;
    }
    return position;
  }

  void emitMultiple(Value offset, int64_t multiple) {
    Value rest = arith::RemUIOp::create(
        rewriter, loc, offset,
        arith::ConstantIndexOp::create(rewriter, loc, multiple));
    Value isMultiple =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, rest,
                              arith::ConstantIndexOp::create(rewriter, loc, 0));
    simt::AssertOp::create(rewriter, loc, isMultiple,
                           "the part of b does not begin at a multiple of 8 "
                           "rows and 32 bytes of K");
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  WgmmaOp op;
  ValueRange offsets;
  SharedLayout addresses;
  Layout extents;
  SharedPositions positions;
  /// The byte of the first step.
  Value first;
};

struct WgmmaPattern : OpConversionPattern<WgmmaOp> {
  WgmmaPattern(const TypeConverter &converter, MLIRContext *context,
               const WgmmaPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(WgmmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    const WgmmaPlan &plan = plans.find(op)->second;
    SmallVector<Value> offsets;
    for (ValueRange offset : adaptor.getOffsets())
      offsets.push_back(offset.front());
    if (op.getNumSlices() > 1)
      offsets.rbegin()[2] = addSlice(rewriter, op, offsets.rbegin()[2]);
    PartPositions positions(rewriter, op, offsets);
    positions.emitChecks();
    SmallVector<Value> registers = {adaptor.getA().front()};
    SmallVector<Value> accumulators(plan.size());
    bool isTile = op.getC() && isa<TileType>(op.getC().getType());
    if (isTile)
      for (const WgmmaPart &part : plan)
        registers.push_back(
            gatherRegisters(rewriter, loc, adaptor.getC().front(),
                            part.accumulators, kAccumulatorsPerRegister));
    else if (op.getC())
      llvm::copy(adaptor.getC(), accumulators.begin());
    auto fence = simt::WgmmaFenceOp::create(
        rewriter, loc, TypeRange(ValueRange(registers)), registers);
    if (isTile)
      llvm::copy(fence.getFenced().drop_front(), accumulators.begin());
    Value a = fence.getFenced().front();
    Type element = cast<VectorType>(a.getType()).getElementType();
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return failure();
    WgmmaTile tile = op.getTileOfB();
    for (size_t k = 0; k < plan.front().steps.size(); ++k) {
      Value byte = positions.getByte(static_cast<int64_t>(k));
      for (auto [part, type, sum] :
           llvm::zip_equal(plan, types, accumulators)) {
        Value fragment = gatherRegisters(rewriter, loc, a, part.steps[k],
                                         32 / element.getIntOrFloatBitWidth());
        // With a swizzle, the stride along K does not count.
        int64_t leading = tile.swizzleBytes ? 16 : tile.leadingBytes;
        sum = simt::WgmmaOp::create(
            rewriter, loc, type, fragment, getPackedType(op.getA().getType()),
            adaptor.getB().front(), byte, getPackedTypeOfB(op),
            tile.swizzleBytes, leading, tile.strideBytes, sum);
      }
    }
    rewriter.replaceOpWithMultiple(op, {accumulators});
    return success();
  }

private:
  /// The offset of the slice of K that the warp has. Ballots make its bits,
  /// which the assembler knows to be the same for all lanes: what follows,
  /// descriptors above all, then is in uniform registers.
  static Value addSlice(OpBuilder &builder, WgmmaOp op, Value offset) {
    Location loc = getNamedLoc(op);
    int64_t numSlices = op.getNumSlices();
    int64_t threads = op.getType().getLayout().numThreads() / numSlices;
    auto makeI32 = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(builder, loc, value, 32);
    };
    Value thread = arith::IndexCastUIOp::create(
        builder, loc, builder.getI32Type(),
        gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x));
    Value own = arith::DivUIOp::create(builder, loc, thread, makeI32(threads));
    Value slice = makeI32(0);
    for (int64_t bit = 1; bit < numSlices; bit *= 2) {
      Value has = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::ne,
          arith::AndIOp::create(builder, loc, own, makeI32(bit)), makeI32(0));
      Value lanes = simt::BallotOp::create(builder, loc, has);
      Value part = arith::AndIOp::create(builder, loc, lanes, makeI32(bit));
      slice = arith::OrIOp::create(builder, loc, slice, part);
    }
    Value index = arith::IndexCastUIOp::create(builder, loc,
                                               builder.getIndexType(), slice);
    return arith::AddIOp::create(builder, loc, offset, index);
  }

  /// What packed elements are; null where registers say so themselves.
  template <typename TypeWithElements>
  static TypeAttr getPackedType(TypeWithElements type) {
    Type element = type.getElementType();
    return isPacked(element) ? TypeAttr::get(element) : TypeAttr();
  }

  /// Words of bits are what `a` is.
  static TypeAttr getPackedTypeOfB(WgmmaOp op) {
    return op.getElementsPerWord() > 1 ? getPackedType(op.getA().getType())
                                       : getPackedType(op.getB().getType());
  }

  const WgmmaPlans &plans;
};

struct WgmmaCommitPattern : OpConversionPattern<WgmmaCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WgmmaCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::WgmmaCommitOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

struct WgmmaWaitPattern : OpConversionPattern<WgmmaWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WgmmaWaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SmallVector<Value> pending;
    for (ValueRange accumulators : adaptor.getPending())
      llvm::append_range(pending, accumulators);
    SmallVector<Type> types =
        llvm::map_to_vector(pending, [](Value accumulators) {
          return Type(
              cast<simt::AccumulatorsType>(accumulators.getType()).getVector());
        });
    auto wait =
        simt::WgmmaWaitOp::create(rewriter, loc, types, op.getNAttr(), pending);
    ValueRange rest = wait.getAccumulators();
    SmallVector<Value> tiles;
    for (auto [parts, tile] :
         llvm::zip_equal(adaptor.getPending(), op.getTiles())) {
      auto orders =
          orderAccumulators(cast<TileType>(tile.getType()).getLayout());
      if (!orders)
        return rewriter.notifyMatchFailure(op, "accumulators of no product");
      tiles.push_back(
          makeTile(rewriter, loc, rest.take_front(parts.size()), *orders));
      rest = rest.drop_front(parts.size());
    }
    rewriter.replaceOp(op, tiles);
    return success();
  }

private:
  /// The registers of a tile whose parts are in the order of the instructions.
  static Value makeTile(OpBuilder &builder, Location loc, ValueRange parts,
                        ArrayRef<SmallVector<int64_t>> orders) {
    Value all = parts.front();
    SmallVector<int64_t> order;
    for (auto [part, registers] : llvm::zip_equal(parts, orders)) {
      if (part != parts.front())
        all = concatenate(builder, loc, all, part);
      llvm::append_range(order, registers);
    }
    // Register i of the parts is the tile's register order[i].
    SmallVector<int64_t> inverse(order.size());
    for (auto [i, index] : llvm::enumerate(order))
      inverse[index] = static_cast<int64_t>(i);
    return gatherRegisters(builder, loc, all, inverse,
                           kAccumulatorsPerRegister);
  }

  static Value concatenate(OpBuilder &builder, Location loc, Value first,
                           Value second) {
    int64_t size = cast<VectorType>(first.getType()).getNumElements() +
                   cast<VectorType>(second.getType()).getNumElements();
    return vector::ShuffleOp::create(
        builder, loc, first, second,
        llvm::to_vector(llvm::seq<int64_t>(0, size)));
  }
};

static int64_t getNumGroups(Operation *op) {
  return getNumWorkers(op->getParentOfType<gpu::GPUFuncOp>()) /
         kThreadsPerWarpgroup;
}

struct TakeTurnPattern : OpConversionPattern<TakeTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TakeTurnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::TakeTurnOp::create(rewriter, getNamedLoc(op), getNumGroups(op));
    rewriter.eraseOp(op);
    return success();
  }
};

struct GiveTurnPattern : OpConversionPattern<GiveTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GiveTurnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    int64_t numGroups = getNumGroups(op);
    if (op.getFirst()) {
      Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
      Value last = arith::ConstantIndexOp::create(
          rewriter, loc, (numGroups - 1) * kThreadsPerWarpgroup);
      Value isLast = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::uge, thread, last);
      auto branch = scf::IfOp::create(rewriter, loc, isLast,
                                      /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    simt::GiveTurnOp::create(rewriter, loc, numGroups);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateWgmmaPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns,
                                  const WgmmaPlans &plans) {
  MLIRContext *context = patterns.getContext();
  patterns.add<WgmmaPattern>(converter, context, plans);
  patterns.add<WgmmaCommitPattern, WgmmaWaitPattern, TakeTurnPattern,
               GiveTurnPattern>(converter, context);
}
