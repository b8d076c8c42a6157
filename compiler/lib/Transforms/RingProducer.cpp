//===- RingProducer.cpp - a warp that fills rings -------------------------===//
//
// Its first thread does nothing but to wait for an empty place and to begin the
// copies of the next iteration into it. It begins with the kernel, so what it
// needs is computed once more in its body.
//
//===----------------------------------------------------------------------===//
#include "RingProducer.h"

#include "lowlp/IR/LowlpRings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowlp;

WaitForDependenciesOp lowlp::findWaitBefore(scf::ForOp loop) {
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto wait = dyn_cast<WaitForDependenciesOp>(op))
      return wait;
    bool isIndifferent = isMemoryEffectFree(op) ||
                         isa<AllocSharedOp, AllocMbarriersOp, AllocGlobalOp,
                             SynchronizeOp, AssumeOp>(op);
    if (!isIndifferent)
      return {};
  }
  return {};
}

/// Adds to `ops` what before the loop computes what the copies need, in order.
static bool collectBefore(scf::ForOp loop, const PipelinedLoads &loads,
                          llvm::SetVector<Operation *> &ops) {
  std::function<bool(Value)> collect = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || loop->isAncestor(op) || ops.contains(op))
      return true;
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0 ||
        op->getBlock() != loop->getBlock() ||
        !llvm::all_of(op->getOperands(), collect))
      return false;
    ops.insert(op);
    return true;
  };
  bool isPossible = collect(loop.getLowerBound()) &&
                    collect(loop.getUpperBound()) && collect(loop.getStep());
  for (const StagedLoad &staged : loads.staged) {
    LoadGlobalOp load = staged.load;
    isPossible = isPossible && collect(load.getSource()) &&
                 llvm::all_of(load.getOffsets(), collect);
    for (Operation *op : staged.addressOps)
      isPossible = isPossible && llvm::all_of(op->getOperands(), collect);
  }
  return isPossible;
}

static bool hasProducer(Operation *op) {
  auto rings = op->getAttrOfType<RingsAttr>(RingsAttr::kName);
  return isa<ProducerWarpOp>(op) ||
         (rings && rings.getCopies() == RingCopies::ProducerWarp);
}

std::string lowlp::findProducerObstacle(scf::ForOp loop,
                                        const PipelinedLoads &loads) {
  auto kernel = loop->getParentOfType<KernelOp>();
  std::string obstacle;
  kernel.walk([&](Operation *op) {
    if (op != loop && hasProducer(op))
      obstacle = "the kernel has a producer warp already";
    else if (isa<ExitOp>(op))
      obstacle = "lowlp.exit may end the block before the loop";
  });
  if (!obstacle.empty())
    return obstacle;
  // It would not know what it has to wait for; what no launch before writes
  // needs no wait.
  bool waits =
      !kernel.getBody().front().getOps<WaitForDependenciesOp>().empty();
  bool isConstant = llvm::all_of(
      loads.staged, [](const StagedLoad &load) { return load.isConstant; });
  if (waits && !isConstant && !findWaitBefore(loop))
    return "more than arithmetic stands between the wait for the launch before "
           "and the loop";
  llvm::SetVector<Operation *> ops;
  if (!collectBefore(loop, loads, ops))
    return "what its copies need is not computed by arithmetic alone";
  return "";
}

/// The copies of all iterations from `begin` on, which is the first of a round.
static void produceAll(LoopRing &ring, OpBuilder &builder, Value empty,
                       Value begin, int64_t round) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = ring.loc;
  auto all = scf::ForOp::create(
      builder, loc, begin,
      ring.before.lookupOrDefault(ring.loop.getUpperBound()),
      ring.before.lookupOrDefault(ring.loop.getStep()),
      ValueRange{ring.buildIndex(builder, 0), ring.buildIndex(builder, round)});
  builder.setInsertionPointToStart(all.getBody());
  Value place = all.getRegionIterArg(0), parity = all.getRegionIterArg(1);
  // Beside the wait, not after it.
  IRMapping mapping = ring.mapAddresses(builder, all.getInductionVar());
  Value one = ring.buildIndex(builder, 1);
  // Of a place that nobody has used, the round before counts as done.
  MbarrierWaitOp::create(builder, loc, empty, place,
                         arith::XOrIOp::create(builder, loc, parity, one));
  MbarrierExpectBytesOp::create(builder, loc, ring.full, place,
                                ring.loads.getStageBytes());
  for (const StagedLoad &load : ring.loads.staged)
    ring.copy(builder, load, place, mapping);
  RingPlace next = ring.getNext(builder, {place, parity});
  scf::YieldOp::create(builder, loc, ValueRange{next.place, next.parity});
}

void lowlp::buildProducer(LoopRing &ring, ProducerWarpOp producer,
                          Value empty) {
  llvm::SetVector<Operation *> ops;
  collectBefore(ring.loop, ring.loads, ops);
  OpBuilder builder(ring.loop.getContext());
  builder.createBlock(&producer.getBody());
  for (Operation *op : ops)
    builder.clone(*op, ring.before);
  Value begin = ring.before.lookupOrDefault(ring.loop.getLowerBound());
  if (!findWaitBefore(ring.loop))
    return produceAll(ring, builder, empty, begin, /*round=*/0);
  // What no launch before writes need not wait for it.
  auto fill = [&](bool isConstant) {
    ring.forFirst(
        builder, begin, ring.numStages, [&](Value number, Value place) {
          if (isConstant)
            MbarrierExpectBytesOp::create(builder, ring.loc, ring.full, place,
                                          ring.loads.getStageBytes());
          ring.copyAll(builder, number, place, [&](const StagedLoad &load) {
            return load.isConstant == isConstant;
          });
        });
  };
  fill(true);
  WaitForDependenciesOp::create(builder, ring.loc);
  fill(false);
  begin = ring.getIteration(builder, begin,
                            ring.buildIndex(builder, ring.numStages));
  produceAll(ring, builder, empty, begin, /*round=*/1);
}
