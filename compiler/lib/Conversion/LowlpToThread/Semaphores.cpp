//===- Semaphores.cpp - waiting for other blocks --------------------------===//
//
// One thread waits or signals for the block; a barrier between it and the rest
// makes that hold for all of them:
//
//   acquire    if first thread: simt.acquire;    barrier
//   release    barrier;    if first thread: simt.release
//
//===----------------------------------------------------------------------===//
#include "Order.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// The word of a semaphore, and what only the first thread does.
class Semaphore {
public:
  Semaphore(ConversionPatternRewriter &rewriter, Operation *op, Value view,
            ValueRange offsets, Value value)
      : rewriter(rewriter), loc(getNamedLoc(op)), layout(Layout::local({1})) {
    GlobalPositions positions(rewriter, loc, view.getDefiningOp<ViewGlobalOp>(),
                              offsets, layout);
    isInside = positions.isInside(0);
    Value four = arith::ConstantIntOp::create(rewriter, loc, 4, 64);
    byteOffset = arith::MulIOp::create(rewriter, loc,
                                       positions.getElementPosition(0), four);
    word =
        arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), value);
  }

  void emitBarrier() { lowlp::emitBarrier(rewriter, loc); }

  /// Emits what `emitAccess` does for the first thread.
  void emitForFirstThread(
      llvm::function_ref<void(Location, Value word, Value byteOffset)>
          emitAccess) {
    Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
    Value isFirst =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, thread,
                              arith::ConstantIndexOp::create(rewriter, loc, 0));
    auto branch = scf::IfOp::create(rewriter, loc, isFirst, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    simt::AssertOp::create(rewriter, loc, isInside,
                           "the semaphore lies outside of the view");
    emitAccess(loc, word, byteOffset);
  }

private:
  ConversionPatternRewriter &rewriter;
  Location loc;
  Layout layout;
  Value isInside, byteOffset, word;
};

struct SemaphoreAcquirePattern : OpConversionPattern<SemaphoreAcquireOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SemaphoreAcquireOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Semaphore semaphore(rewriter, op, op.getView(), adaptor.getOffsets(),
                        adaptor.getValue());
    semaphore.emitForFirstThread(
        [&](Location loc, Value word, Value byteOffset) {
          simt::AcquireOp::create(rewriter, loc, word, adaptor.getView(),
                                  byteOffset);
        });
    semaphore.emitBarrier();
    rewriter.eraseOp(op);
    return success();
  }
};

struct SemaphoreReleasePattern : OpConversionPattern<SemaphoreReleaseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SemaphoreReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Semaphore semaphore(rewriter, op, op.getView(), adaptor.getOffsets(),
                        adaptor.getValue());
    semaphore.emitBarrier();
    auto kind = op.getAdd() ? simt::ReleaseKind::Add : simt::ReleaseKind::Store;
    semaphore.emitForFirstThread(
        [&](Location loc, Value word, Value byteOffset) {
          simt::ReleaseOp::create(rewriter, loc, kind, word, adaptor.getView(),
                                  byteOffset);
        });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateSemaphorePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<SemaphoreAcquirePattern, SemaphoreReleasePattern>(
      converter, patterns.getContext());
}
