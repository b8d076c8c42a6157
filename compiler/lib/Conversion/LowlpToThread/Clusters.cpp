//===- Clusters.cpp - exchanges among the blocks of a cluster -------------===//
//
// Where thread t of block r gives words 0 .. p - 1 of part s to block s, in
// vectors of v words, the largest of 1, 2 and 4 that divides p:
//
//   the first thread makes an mbarrier that expects what the others give
//   barrier of the cluster        all blocks have begun and have mbarriers
//   store to each block s but r   word w at [r', w / v, t, w % v], which
//                                 arrives at the mbarrier of s
//   wait for the own mbarrier
//   load from the own block       words of block s at [s', w / v, t, w % v]
//
// r' counts the blocks but s, and s' those but r: what a block gives itself
// stays in registers. Lanes of a warp store and load neighbouring vectors, and
// each thread gets its words from the threads of its own number. No fence is
// in the way: those of barriers that order memory wait for all of it, global
// memory too.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "Order.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace lowlp;

namespace {

/// Emits one exchange.
class Exchange {
public:
  Exchange(ConversionPatternRewriter &rewriter, ExchangeInClusterOp op,
           Value shared)
      : rewriter(rewriter), loc(getNamedLoc(op)), tile(op.getParts().getType()),
        shared(shared), blocks(tile.getShape().front()),
        words(op.getWordsOfPart()), takenBytes(kWordBytes * op.getTakenWords()),
        width(std::gcd(words, kVectorWords)),
        planeBytes(tile.getNumThreads() * width * kWordBytes) {
    Value block = gpu::BlockIdOp::create(rewriter, loc, gpu::Dimension::x);
    number = toI64(create<arith::RemUIOp>(
        block, arith::ConstantIndexOp::create(rewriter, loc, blocks)));
    ofThread = create<arith::MulIOp>(
        toI64(gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x)),
        constant(width * kWordBytes));
  }

  /// The registers of what this block gets.
  Value emit(Value parts) {
    Value given = toWords(rewriter, loc, tile, parts);
    makeMbarrier();
    simt::ClusterBarrierOp::create(rewriter, loc);
    for (int64_t taker = 0; taker < blocks; ++taker)
      give(taker, slice(given, taker * words, words));
    simt::MbarrierWaitOp::create(
        rewriter, loc, shared, constant(takenBytes),
        arith::ConstantIntOp::create(rewriter, loc, rewriter.getI32Type(), 0));
    Value taken = zero(given.getType());
    for (int64_t giver = 0; giver < blocks; ++giver)
      taken = insert(take(giver, slice(given, giver * words, words)), taken,
                     giver * words);
    return fromWords(rewriter, loc, tile, taken);
  }

private:
  static constexpr int64_t kWordBytes = 4, kVectorWords = 4;

  template <typename Op> Value create(Value a, Value b) {
    return Op::create(rewriter, loc, a, b);
  }
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(rewriter, loc, rewriter.getI64Type(),
                                        value);
  }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(),
                                      index);
  }
  Value zero(Type type) {
    return arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
  }
  Value slice(Value vector, int64_t begin, int64_t count) {
    return vector::ExtractStridedSliceOp::create(
        rewriter, loc, vector, ArrayRef<int64_t>{begin},
        ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
  }
  Value insert(Value part, Value into, int64_t begin) {
    return vector::InsertStridedSliceOp::create(rewriter, loc, part, into,
                                                ArrayRef<int64_t>{begin},
                                                ArrayRef<int64_t>{1});
  }
  Value compare(arith::CmpIPredicate predicate, int64_t other) {
    return arith::CmpIOp::create(rewriter, loc, predicate, number,
                                 constant(other));
  }

  void makeMbarrier() {
    OpBuilder::InsertionGuard guard(rewriter);
    enterFirstThread(rewriter, loc);
    Value offset = constant(takenBytes);
    simt::MbarrierInitOp::create(rewriter, loc, shared, offset, /*arrivals=*/1,
                                 /*by_warps=*/false);
    simt::FenceMbarrierInitOp::create(rewriter, loc);
    simt::MbarrierArriveOp::create(rewriter, loc, shared, offset,
                                   rewriter.getI64IntegerAttr(takenBytes),
                                   /*by_warp=*/false, /*loads_ended=*/false);
  }

  /// Where the first vector of this thread lies in the place of a block.
  Value getOffset(Value place) {
    return create<arith::AddIOp>(
        create<arith::MulIOp>(place, constant(words / width * planeBytes)),
        ofThread);
  }

  /// Stores a part where block `taker` finds it, unless that is this one.
  void give(int64_t taker, Value part) {
    auto branch = scf::IfOp::create(rewriter, loc,
                                    compare(arith::CmpIPredicate::ne, taker),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    Value isBehind =
        arith::ExtUIOp::create(rewriter, loc, rewriter.getI64Type(),
                               compare(arith::CmpIPredicate::ugt, taker));
    Value offset = getOffset(create<arith::SubIOp>(number, isBehind));
    auto cluster =
        simt::PtrType::get(rewriter.getContext(), simt::MemorySpace::Cluster);
    Value base = simt::MapSharedOp::create(
        rewriter, loc, cluster, shared,
        arith::ConstantIntOp::create(rewriter, loc, rewriter.getI32Type(),
                                     taker));
    for (int64_t i = 0; i < words / width; ++i)
      simt::StoreAsyncOp::create(
          rewriter, loc, slice(part, i * width, width), base,
          create<arith::AddIOp>(offset, constant(i * planeBytes)),
          constant(takenBytes));
  }

  /// What block `giver` has stored here, or `own` if that is this one.
  Value take(int64_t giver, Value own) {
    auto branch = scf::IfOp::create(rewriter, loc, own.getType(),
                                    compare(arith::CmpIPredicate::eq, giver),
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc, own);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    Value isBefore =
        arith::ExtUIOp::create(rewriter, loc, rewriter.getI64Type(),
                               compare(arith::CmpIPredicate::ult, giver));
    Value offset = getOffset(create<arith::SubIOp>(constant(giver), isBefore));
    auto type = VectorType::get({width}, rewriter.getI32Type());
    Value part = zero(own.getType());
    for (int64_t i = 0; i < words / width; ++i) {
      Value value = simt::LoadOp::create(
          rewriter, loc, type, shared,
          create<arith::AddIOp>(offset, constant(i * planeBytes)),
          width * kWordBytes);
      part = insert(value, part, i * width);
    }
    scf::YieldOp::create(rewriter, loc, part);
    return branch.getResult(0);
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  TileType tile;
  Value shared;
  int64_t blocks, words;  ///< `words` of a part
  int64_t takenBytes;     ///< after which the mbarrier lies
  int64_t width;          ///< of a vector, in words
  int64_t planeBytes;     ///< one vector of each thread
  Value number, ofThread; ///< of this block in its cluster; in bytes
};

struct ExchangeInClusterPattern : OpConversionPattern<ExchangeInClusterOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExchangeInClusterOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getShared())
      return rewriter.notifyMatchFailure(op, "it has no shared memory");
    Exchange exchange(rewriter, op, adaptor.getShared());
    rewriter.replaceOp(op, exchange.emit(adaptor.getParts()));
    return success();
  }
};

} // namespace

void lowlp::populateClusterPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<ExchangeInClusterPattern>(converter, patterns.getContext());
}
