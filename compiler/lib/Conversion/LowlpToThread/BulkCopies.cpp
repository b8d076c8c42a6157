//===- BulkCopies.cpp - bulk copies of a block ----------------------------===//
//
// A part is copied row by row, in a loop of the first thread: a row is a run of
// bytes in both memories.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "SharedMemory.h"
#include "TensorMaps.h"
#include "TilePositions.h"

#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace lowlp;

namespace {

/// Where a row begins in both memories, in bytes.
struct Row {
  Value viewOffset, sharedOffset;
};

} // namespace

/// The bytes from the begin of memory to the element at `position`.
static Value toBytes(OpBuilder &builder, Location loc, Value position,
                     int64_t elementBits) {
  Value bits = arith::MulIOp::create(
      builder, loc, position,
      arith::ConstantIntOp::create(builder, loc, elementBits, 64));
  return arith::DivUIOp::create(
      builder, loc, bits, arith::ConstantIntOp::create(builder, loc, 8, 64));
}

/// Begins a loop of the first thread over the rows of a part, each of which
/// must lie in the view, and returns the places of the row.
static Row enterRows(ConversionPatternRewriter &rewriter, Location loc,
                     ViewGlobalOp view, ValueRange viewOffsets,
                     SharedType shared, ValueRange sharedOffsets,
                     ArrayRef<int64_t> shape) {
  enterFirstThread(rewriter, loc);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  SmallVector<int64_t> rows(shape);
  rows.back() = 1;
  int64_t numRows = std::accumulate(rows.begin(), rows.end(), int64_t(1),
                                    std::multiplies<>());
  Value number = index(0);
  if (numRows > 1) {
    auto loop =
        scf::ForOp::create(rewriter, loc, number, index(numRows), index(1));
    rewriter.setInsertionPointToStart(loop.getBody());
    number = loop.getInductionVar();
  }
  SmallVector<Value> coordinates = splitChunk(rewriter, loc, number, rows);
  coordinates.back() = index(0);
  Layout run = Layout::local({shape.back()});
  GlobalPositions from(
      rewriter, loc, view,
      addChunk(rewriter, loc, viewOffsets, coordinates, shape.back()), run);
  SharedPositions to(
      rewriter, loc, shared.getLayout(),
      addChunk(rewriter, loc, sharedOffsets, coordinates, shape.back()), run);
  simt::AssertOp::create(rewriter, loc, from.areInside(0, shape.back()),
                         "a bulk copy takes whole rows, but an element lies "
                         "outside of the view");
  simt::AssertOp::create(rewriter, loc, to.areInside(0, shape.back()),
                         "a bulk copy takes whole rows, but an element lies "
                         "outside of the shared tile");
  int64_t bits = *getElementBits(shared.getElementType());
  return {toBytes(rewriter, loc, from.getElementPosition(0), bits),
          toBytes(rewriter, loc, to.getElementPosition(0), bits)};
}

static int64_t getRowBytes(SharedType shared, ArrayRef<int64_t> shape) {
  return shape.back() * *getElementBits(shared.getElementType()) / 8;
}

namespace {

struct CopyBulkPattern : OpConversionPattern<CopyBulkOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyBulkOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SharedType shared = op.getDestination().getType();
    OpBuilder::InsertionGuard guard(rewriter);
    Row row =
        enterRows(rewriter, loc, op.getSource().getDefiningOp<ViewGlobalOp>(),
                  adaptor.getSourceOffsets(), shared,
                  adaptor.getDestinationOffsets(), op.getShape());
    simt::CopyBulkOp::create(
        rewriter, loc, adaptor.getSource(), row.viewOffset,
        adaptor.getDestination(), row.sharedOffset, adaptor.getBarriers(),
        getMbarrierOffset(rewriter, loc, adaptor.getBarrier()),
        getRowBytes(shared, op.getShape()));
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkToGlobalPattern : OpConversionPattern<CopyBulkToGlobalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyBulkToGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SharedType shared = op.getSource().getType();
    OpBuilder::InsertionGuard guard(rewriter);
    Row row = enterRows(rewriter, loc,
                        op.getDestination().getDefiningOp<ViewGlobalOp>(),
                        adaptor.getDestinationOffsets(), shared,
                        adaptor.getSourceOffsets(), op.getShape());
    simt::CopyBulkToGlobalOp::create(rewriter, loc, adaptor.getSource(),
                                     row.sharedOffset, adaptor.getDestination(),
                                     row.viewOffset,
                                     getRowBytes(shared, op.getShape()));
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkCommitPattern : OpConversionPattern<CopyBulkCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyBulkCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::CopyBulkCommitOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkWaitPattern : OpConversionPattern<CopyBulkWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyBulkWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::CopyBulkWaitOp::create(rewriter, getNamedLoc(op), op.getN(),
                                 op.getRead());
    rewriter.eraseOp(op);
    return success();
  }
};

/// The boxes of a part, each one instruction, by dimension of the view. They
/// lie in shared memory one after the other, in row-major order.
struct BoxGrid {
  BoxGrid(CopyTensorOp op, const TensorBox &copied)
      : box(copied.box), counts(box.size(), 1), shares(box.size(), 1),
        boxBytes(*getElementBits(op.getSource().getType().getElementType()) /
                 8) {
    for (size_t d = 0; d < box.size(); ++d) {
      boxBytes *= box[d];
      counts[d] = copied.shape[d] / box[d];
    }
    shares = counts;
    int64_t blocks = MulticastAttr::countBlocks(op);
    if (blocks == 1)
      return;
    while (counts[dim] % blocks != 0)
      ++dim;
    shares[dim] /= blocks;
  }

  /// From the begin of the share of a block to that of the next one.
  int64_t getExtentOfShare() const { return shares[dim] * box[dim]; }
  int64_t getBytesOfShare() const {
    int64_t bytes = boxBytes * shares[dim];
    for (size_t d = dim + 1; d < counts.size(); ++d)
      bytes *= counts[d];
    return bytes;
  }

  /// Calls `visit` for each box that one block copies, with its place in the
  /// share and the bytes from the begin of the share.
  void forEach(function_ref<void(ArrayRef<int64_t>, int64_t)> visit) const {
    Layout places =
        Layout::local(std::vector<int64_t>(shares.begin(), shares.end()));
    for (int64_t i = 0; i < places.numLocals(); ++i) {
      std::vector<int64_t> place = places.evaluate(0, i);
      int64_t number = 0;
      for (size_t d = 0; d < box.size(); ++d) {
        number = number * counts[d] + place[d];
        place[d] *= box[d];
      }
      visit(place, number * boxBytes);
    }
  }

  SmallVector<int64_t> box, counts, shares; ///< `shares` of one block
  int64_t boxBytes;
  size_t dim = 0; ///< along which blocks have shares
};

/// The map is one of the last arguments.
struct CopyTensorPattern : OpConversionPattern<CopyTensorOp> {
  CopyTensorPattern(const TypeConverter &converter, MLIRContext *context,
                    const TensorMapPlan &plan)
      : OpConversionPattern(converter, context), plan(plan) {}

  LogicalResult
  matchAndRewrite(CopyTensorOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SharedType shared = op.getDestination().getType();
    int64_t bits = *getElementBits(shared.getElementType());
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    auto maps = kernel->getAttrOfType<ArrayAttr>("lowlp.tensor_maps");
    Value map = kernel.getArgument(kernel.getNumArguments() - maps.size() +
                                   plan.number.lookup(op));
    OpBuilder::InsertionGuard guard(rewriter);
    enterFirstThread(rewriter, loc);
    Type i64 = rewriter.getI64Type();
    auto toI64 = [&](Value value) -> Value {
      return arith::IndexCastOp::create(rewriter, loc, i64, value);
    };
    Layout one = Layout::local({1});
    GlobalPositions positions(rewriter, loc,
                              op.getSource().getDefiningOp<ViewGlobalOp>(),
                              adaptor.getSourceOffsets(), one);
    SmallVector<Value> extents, strides;
    for (Value extent : positions.getExtents())
      extents.push_back(toI64(extent));
    for (Value stride : positions.getStrides().drop_back())
      strides.push_back(toBytes(rewriter, loc, toI64(stride), bits));
    SharedPositions to(rewriter, loc, shared.getLayout(),
                       adaptor.getDestinationOffsets(), one);
    simt::AssertOp::create(rewriter, loc, to.isInside(0),
                           "a tensor copy begins outside of the shared tile");
    Value begin = toBytes(rewriter, loc, to.getElementPosition(0), bits);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(rewriter, loc, value, 64);
    };
    Value barrier = getMbarrierOffset(rewriter, loc, adaptor.getBarrier());
    SmallVector<Value> from(adaptor.getSourceOffsets());
    TensorBox copied = getTensorBox(op);
    if (copied.rowPart) {
      extents.back() = constant(copied.box[copied.box.size() - 2]);
      extents.push_back(constant(copied.rowPart));
      strides.push_back(constant(copied.rowPart * bits / 8));
      from.push_back(arith::ConstantIndexOp::create(rewriter, loc, 0));
    }
    BoxGrid boxes(op, copied);
    MulticastAttr multicast = MulticastAttr::of(op);
    if (multicast) {
      // This block's part.
      Value number = arith::RemUIOp::create(
          rewriter, loc,
          gpu::BlockIdOp::create(rewriter, loc, gpu::Dimension::x),
          arith::ConstantIndexOp::create(rewriter, loc, multicast.getBlocks()));
      Value along = arith::ConstantIndexOp::create(rewriter, loc,
                                                   boxes.getExtentOfShare());
      from[boxes.dim] = arith::AddIOp::create(
          rewriter, loc, from[boxes.dim],
          arith::MulIOp::create(rewriter, loc, number, along));
      begin = arith::AddIOp::create(
          rewriter, loc, begin,
          arith::MulIOp::create(rewriter, loc, toI64(number),
                                constant(boxes.getBytesOfShare())));
    }
    boxes.forEach([&](ArrayRef<int64_t> place, int64_t copiedBytes) {
      SmallVector<Value> offsets;
      for (auto [offset, added] : llvm::zip_equal(from, place))
        offsets.push_back(added ? arith::AddIOp::create(rewriter, loc,
                                                        toI64(offset),
                                                        constant(added))
                                      .getResult()
                                : toI64(offset));
      Value at = copiedBytes ? arith::AddIOp::create(rewriter, loc, begin,
                                                     constant(copiedBytes))
                                   .getResult()
                             : begin;
      auto copy = simt::CopyTensorOp::create(
          rewriter, loc, map, adaptor.getSource(), extents, strides, offsets,
          adaptor.getDestination(), at, adaptor.getBarriers(), barrier,
          copied.box, bits / 8, op.getSwizzleBytes());
      if (multicast)
        copy->setDiscardableAttr(MulticastAttr::kName, multicast);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  const TensorMapPlan &plan;
};

} // namespace

void lowlp::populateBulkCopyPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns,
                                     const TensorMapPlan &plan) {
  MLIRContext *context = patterns.getContext();
  patterns.add<CopyBulkPattern, CopyBulkToGlobalPattern, CopyBulkCommitPattern,
               CopyBulkWaitPattern>(converter, context);
  patterns.add<CopyTensorPattern>(converter, context, plan);
}
