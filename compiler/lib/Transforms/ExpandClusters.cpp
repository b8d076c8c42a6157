//===- ExpandClusters.cpp - lowlp-expand-clusters -------------------------===//
//
// Of an exchange of parts of n elements among the c blocks of a cluster, the
// first of which is block `first`, with one memory of [blocks, c, n]:
//
//   taken   [taker, giver, n]   block b loads all that it gets at [b, 0, 0]
//   given   [giver, taker, n]   the same memory, in which the block of number r
//                               in its cluster stores all it gives at
//                               [r, first, 0]
//
// A barrier of the cluster has three words, and its first block leads:
//
//   leader    wait for arrived == c - 1; arrived = 0; open = 1
//             wait for left == c - 1;    left = 0;    open = 0
//   others    arrived += 1; wait for open == 1; left += 1
//
// So each word is waited for before anyone gives it another value, and all are
// zero again after it.
//
//===----------------------------------------------------------------------===//
#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/LowlpRings.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace lowlp {
#define GEN_PASS_DEF_EXPANDCLUSTERS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

namespace {

class Expansion {
public:
  Expansion(ExchangeInClusterOp op, KernelOp kernel)
      : builder(op), loc(op.getLoc()), op(op), kernel(kernel),
        numBlocks(kernel.getScheduleOrDefault().getCluster()) {
    Type type = builder.getIndexType();
    block = BlockIndicesOp::create(builder, loc, TypeRange(type)).getResult(0);
    number = create<arith::RemUIOp>(block, index(numBlocks));
    first = create<arith::SubIOp>(block, number);
    end = create<arith::AddIOp>(first, index(numBlocks));
  }

  /// What the exchange results in.
  Value emit() {
    TileType tile = op.getParts().getType();
    ArrayRef<int64_t> part = tile.getShape().drop_front();
    Type element = tile.getElementType();
    SmallVector<int64_t> extents = {numBlocks};
    llvm::append_range(extents, part);
    Value memory = allocate(element, extents, /*zeroed=*/false);
    int64_t elements = 1;
    SmallVector<int64_t> strides(part.size());
    for (size_t dim = part.size(); dim-- > 0; elements *= part[dim])
      strides[dim] = elements;
    strides.insert(strides.begin(), {elements, numBlocks * elements});
    // Only the outer extents are values: `end` is enough, since no block comes
    // to what lies after its cluster.
    SmallVector<OpFoldResult> givenShape = {builder.getIndexAttr(numBlocks),
                                            end};
    SmallVector<OpFoldResult> takenShape = {end};
    for (int64_t extent : part)
      givenShape.push_back(builder.getIndexAttr(extent));
    for (int64_t extent : extents)
      takenShape.push_back(builder.getIndexAttr(extent));
    Value given = view(memory, element, givenShape, strides);
    Value taken = view(memory, element, takenShape, /*strides=*/{});
    SmallVector<Value> to = {number, first}, from = {block, index(0)};
    to.append(part.size(), index(0));
    from.append(part.size(), index(0));
    StoreGlobalOp::create(builder, loc, op.getParts(), given, to,
                          /*in_bounds=*/true);
    emitBarrier();
    return LoadGlobalOp::create(builder, loc, tile, taken, from,
                                /*in_bounds=*/true);
  }

private:
  enum Word : int64_t { Arrived, Open, Left, NumWords };

  template <typename Op> Value create(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  /// Memory of these extents for each block.
  Value allocate(Type element, ArrayRef<int64_t> extents, bool zeroed) {
    AffineMap grid = kernel.getGrid();
    SmallVector<AffineExpr> shape = {grid.getResult(0)};
    for (int64_t extent : extents)
      shape.push_back(builder.getAffineConstantExpr(extent));
    auto map = AffineMap::get(grid.getNumDims(), 0, shape, op.getContext());
    return AllocGlobalOp::create(
        builder, loc, PointerType::get(op.getContext(), element), map, zeroed);
  }

  /// Row-major without strides.
  Value view(Value memory, Type element, ArrayRef<OpFoldResult> shape,
             ArrayRef<int64_t> strides) {
    SmallVector<int64_t> extents;
    SmallVector<Value> values;
    dispatchIndexOpFoldResults(shape, values, extents);
    auto type = GlobalType::get(op.getContext(), extents, element);
    return ViewGlobalOp::create(builder, loc, type, memory, values,
                                ValueRange(), extents, strides);
  }

  void emitBarrier() {
    Type word = builder.getIntegerType(32, /*isSigned=*/true);
    SmallVector<OpFoldResult> shape = {end, builder.getIndexAttr(NumWords)};
    words = view(allocate(word, {NumWords}, /*zeroed=*/true), word, shape, {});
    Value leads = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        number, index(0));
    auto branch = scf::IfOp::create(builder, loc, leads, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    await(Arrived, numBlocks - 1);
    give(Arrived, 0);
    give(Open, 1);
    await(Left, numBlocks - 1);
    give(Left, 0);
    give(Open, 0);
    builder.setInsertionPointToStart(branch.elseBlock());
    give(Arrived, 1, /*add=*/true);
    await(Open, 1);
    give(Left, 1, /*add=*/true);
  }

  void await(Word word, int64_t value) {
    SmallVector<Value> offsets = {first, index(word)};
    SemaphoreAcquireOp::create(builder, loc, words, offsets, index(value));
  }
  void give(Word word, int64_t value, bool add = false) {
    SmallVector<Value> offsets = {first, index(word)};
    SemaphoreReleaseOp::create(builder, loc, words, offsets, index(value), add);
  }

  OpBuilder builder;
  Location loc;
  ExchangeInClusterOp op;
  KernelOp kernel;
  int64_t numBlocks;
  Value block, number, first, end; ///< `end` of the cluster
  Value words;                     ///< of the barrier that is made
};

struct ExpandClusters : lowlp::impl::ExpandClustersBase<ExpandClusters> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    kernel.walk([&](ExchangeInClusterOp op) {
      op.replaceAllUsesWith(Expansion(op, kernel).emit());
      op.erase();
    });
    // Each block copies for itself then.
    kernel.walk(
        [](scf::ForOp loop) { loop->removeAttr(MulticastAttr::kName); });
    kernel.changeSchedule(kernel.getScheduleOrDefault().withoutCluster());
  }
};

} // namespace
