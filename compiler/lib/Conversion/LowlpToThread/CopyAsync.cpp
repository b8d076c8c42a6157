//===- CopyAsync.cpp - asynchronous copies to shared memory ---------------===//
//
// The part is cut into chunks of v neighbours along its last dimension; thread
// t of T copies chunks t, t + T, t + 2 T ... in row-major order, so that a warp
// reads neighbours. v is as large as an access of both memories may be. Chunks
// of 4, 8 or 16 bytes are copied asynchronously (PTX ISA, cp.async), smaller
// ones are loaded and stored.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "SharedMemory.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace lowlp;

void lowlp::planCopyWidths(Operation *root, AccessWidths &widths) {
  root->walk([&](CopyAsyncOp copy) {
    ArrayRef<int64_t> shape = copy.getShape();
    const SharedLayout &addresses = copy.getDestination().getType().getLayout();
    int64_t run =
        std::gcd(std::gcd(shape.back(),
                          addresses.contiguousAddresses(addresses.rank() - 1)),
                 getPowerOf2Divisor(copy.getDestinationOffsets().back()));
    widths[copy] =
        findGlobalWidth(copy.getSource(), copy.getSourceOffsets(),
                        Layout::local(shape.vec()), run, copy.getInBounds());
  });
}

namespace {

struct CopyAsyncPattern : OpConversionPattern<CopyAsyncOp> {
  CopyAsyncPattern(const TypeConverter &converter, MLIRContext *context,
                   const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(CopyAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    std::optional<ArrayRef<int32_t>> blockSize = kernel.getKnownBlockSize();
    SmallVector<int64_t> chunks(op.getShape());
    chunks.back() /= widths.lookup(op);
    auto index = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
    auto loop = scf::ForOp::create(
        rewriter, loc, thread,
        index(std::accumulate(chunks.begin(), chunks.end(), int64_t(1),
                              std::multiplies<>())),
        index((*blockSize)[0]));
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    copyChunk(rewriter, op, adaptor,
              splitChunk(rewriter, loc, loop.getInductionVar(), chunks));
    rewriter.eraseOp(op);
    return success();
  }

private:
  void copyChunk(ConversionPatternRewriter &rewriter, CopyAsyncOp op,
                 OpAdaptor adaptor, ArrayRef<Value> coordinates) const {
    Location loc = getNamedLoc(op);
    int64_t width = widths.lookup(op);
    SharedType shared = op.getDestination().getType();
    Layout chunk = Layout::local({width});
    GlobalPositions from(
        rewriter, loc, op.getSource().getDefiningOp<ViewGlobalOp>(),
        addChunk(rewriter, loc, adaptor.getSourceOffsets(), coordinates, width),
        chunk);
    SharedPositions to(rewriter, loc, shared.getLayout(),
                       addChunk(rewriter, loc, adaptor.getDestinationOffsets(),
                                coordinates, width),
                       chunk);
    GroupCopy copy{adaptor.getSource(),      from.getElementPosition(0),
                   adaptor.getDestination(), to.getElementPosition(0),
                   shared.getElementType(),  width};
    if (op.getInBounds())
      simt::AssertOp::create(rewriter, loc, from.areInside(0, width), kOutside);
    else
      copy.isInside = from.isInside(0);
    auto branch = scf::IfOp::create(rewriter, loc, to.isInside(0),
                                    /*withElse=*/false);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    emitGroupCopy(rewriter, loc, copy);
  }

  const AccessWidths &widths;
};

struct CopyAsyncCommitPattern : OpConversionPattern<CopyAsyncCommitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyAsyncCommitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::CopyAsyncCommitOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyAsyncWaitPattern : OpConversionPattern<CopyAsyncWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyAsyncWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::CopyAsyncWaitOp::create(rewriter, getNamedLoc(op), op.getN());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateCopyPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns,
                                 const AccessWidths &widths) {
  MLIRContext *context = patterns.getContext();
  patterns.add<CopyAsyncPattern>(converter, context, widths);
  patterns.add<CopyAsyncCommitPattern, CopyAsyncWaitPattern>(converter,
                                                             context);
}
