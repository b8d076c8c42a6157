//===- RingProducer.cpp - a warp that fills rings -------------------------===//
//
// Its first thread does nothing but to wait for an empty place and to begin the
// copies of the next iteration into it. It begins with the kernel, so what it
// needs is computed once more in its body. What the block keeps in shared
// memory before the loop it reads too, once an mbarrier says that it is there.
//
//===----------------------------------------------------------------------===//
#include "RingProducer.h"

#include "lowlp/IR/LowlpRings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lowlp;

WaitForDependenciesOp lowlp::findWaitBefore(scf::ForOp loop, bool acrossReads) {
  for (Operation *op = getOutermost(loop)->getPrevNode(); op;
       op = op->getPrevNode()) {
    if (auto wait = dyn_cast<WaitForDependenciesOp>(op))
      return wait;
    bool isIndifferent = isMemoryEffectFree(op) ||
                         (acrossReads && onlyReads(op)) ||
                         isa<AllocSharedOp, AllocMbarriersOp, AllocGlobalOp,
                             SynchronizeOp, AssumeOp>(op);
    if (!isIndifferent)
      return {};
  }
  return {};
}

/// Whether `op` loads a number from shared memory that holds the same from
/// before the loop on: all that writes to it stands in the body of the kernel
/// before the loop, and a barrier of the block follows there.
static bool loadsWhatIsKept(Operation *op, scf::ForOp loop) {
  auto load = dyn_cast<LoadScalarOp>(op);
  auto shared =
      load ? load.getSource().getDefiningOp<AllocSharedOp>() : AllocSharedOp();
  if (!shared)
    return false;
  Operation *outermost = getOutermost(loop);
  Operation *lastWrite = nullptr;
  for (Operation *user : shared->getUsers()) {
    if (isa<LoadScalarOp, LoadSharedOp>(user))
      continue;
    if (!isa<StoreSharedOp>(user) ||
        user->getBlock() != outermost->getBlock() ||
        !user->isBeforeInBlock(outermost))
      return false;
    if (!lastWrite || lastWrite->isBeforeInBlock(user))
      lastWrite = user;
  }
  if (!lastWrite)
    return false;
  for (Operation *next = lastWrite; next != outermost;
       next = next->getNextNode())
    if (isa<SynchronizeOp>(next))
      return true;
  return false;
}

/// Adds to `ops` what before the loop, and before the loop around it, computes
/// what the copies need, in order.
static bool collectBefore(scf::ForOp loop, const PipelinedLoads &loads,
                          llvm::SetVector<Operation *> &ops) {
  scf::ForOp around = getLoopAround(loop);
  std::function<bool(Value)> collect = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      // What the loop around carries is known to those who compute it.
      return !around || value.getParentBlock() != around.getBody() ||
             value == around.getInductionVar();
    if (loop->isAncestor(op) || ops.contains(op))
      return true;
    bool isBefore = op->getBlock() == loop->getBlock() ||
                    (around && op->getBlock() == around->getBlock());
    bool isKnown = isMemoryEffectFree(op) || isa<AllocSharedOp>(op) ||
                   loadsWhatIsKept(op, loop);
    if (!isKnown || op->getNumRegions() != 0 || !isBefore ||
        !llvm::all_of(op->getOperands(), collect))
      return false;
    // The producer uses the tile itself.
    if (isa<AllocSharedOp>(op))
      return true;
    ops.insert(op);
    return true;
  };
  auto collectBounds = [&](scf::ForOp op) {
    return collect(op.getLowerBound()) && collect(op.getUpperBound()) &&
           collect(op.getStep());
  };
  bool isPossible = collectBounds(loop) && (!around || collectBounds(around));
  for (const StagedLoad &staged : loads.staged) {
    LoadGlobalOp load = staged.load;
    isPossible = isPossible && collect(load.getSource()) &&
                 llvm::all_of(load.getOffsets(), collect);
    for (Operation *op : staged.addressOps)
      isPossible = isPossible && llvm::all_of(op->getOperands(), collect);
  }
  return isPossible;
}

static bool readsShared(const llvm::SetVector<Operation *> &ops) {
  return llvm::any_of(ops, llvm::IsaPred<LoadScalarOp>);
}

llvm::SetVector<Operation *> lowlp::getKeptTiles(scf::ForOp loop,
                                                 const PipelinedLoads &loads) {
  llvm::SetVector<Operation *> ops, tiles;
  collectBefore(loop, loads, ops);
  for (Operation *op : ops)
    if (auto load = dyn_cast<LoadScalarOp>(op))
      tiles.insert(load.getSource().getDefiningOp());
  return tiles;
}

static bool hasProducer(Operation *op) {
  auto rings = op->getAttrOfType<RingsAttr>(RingsAttr::kName);
  return isa<ProducerWarpOp>(op) ||
         (rings && rings.getCopies() == RingCopies::ProducerWarp);
}

/// Whether no launch before writes what is loaded.
static bool areConstant(const PipelinedLoads &loads) {
  return llvm::all_of(loads.staged,
                      [](const StagedLoad &load) { return load.isConstant; });
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
  llvm::SetVector<Operation *> ops;
  bool isKnown = collectBefore(loop, loads, ops);
  // It would not know what it has to wait for; what no launch before writes
  // needs no wait, and what the block keeps is there after its own.
  bool waits =
      !kernel.getBody().front().getOps<WaitForDependenciesOp>().empty();
  if (waits && !areConstant(loads) && !readsShared(ops) &&
      !findWaitBefore(loop, /*acrossReads=*/true))
    return "more than arithmetic and reads stands between the wait for the "
           "launch before and the loop";
  if (!isKnown)
    return "what its copies need is not computed by arithmetic alone";
  return "";
}

namespace {

/// Writes the body of a producer.
class Producer {
public:
  Producer(LoopRing &ring, ProducerWarpOp producer, Value empty, Value kept)
      : ring(ring), loc(ring.loc), empty(empty), kept(kept),
        around(getLoopAround(ring.loop)), builder(producer.getContext()) {
    builder.createBlock(&producer.getBody());
    collectBefore(ring.loop, ring.loads, ops);
  }

  void run() {
    scf::ForOp outermost = getOutermost(ring.loop);
    Value zero = ring.buildIndex(builder, 0);
    if (kept) {
      auto kernel = cast<KernelOp>(outermost->getParentOp());
      if (!kernel.getBody().front().getOps<WaitForDependenciesOp>().empty())
        WaitForDependenciesOp::create(builder, loc);
      MbarrierWaitOp::create(builder, loc, kept, zero, zero);
    }
    cloneOps(outermost->getBlock());
    Value count = zero;
    if (!kept && !areConstant(ring.loads) &&
        findWaitBefore(ring.loop, /*acrossReads=*/true))
      count = fillFirst();
    // In the round after, if all places are filled.
    Value isNext =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, count,
                              ring.buildIndex(builder, ring.numStages));
    Value one = ring.buildIndex(builder, 1);
    RingPlace place = {
        arith::SelectOp::create(builder, loc, isNext, zero, count),
        arith::SelectOp::create(builder, loc, isNext, one, zero)};
    if (!around) {
      waitForReaders(produce(place, count));
      return;
    }
    // Two loops carry them, beside what tiles need, in few registers.
    place = {narrow(place.place), narrow(place.parity)};
    auto tiles = createLoop(around, look(around.getLowerBound()),
                            {place.place, place.parity, count});
    IRMapping outside = ring.before;
    ring.before.map(around.getInductionVar(), tiles.getInductionVar());
    cloneOps(ring.loop->getBlock());
    place = produce({tiles.getRegionIterArg(0), tiles.getRegionIterArg(1)},
                    tiles.getRegionIterArg(2));
    scf::YieldOp::create(builder, loc,
                         ValueRange{place.place, place.parity, zero});
    builder.setInsertionPointAfter(tiles);
    ring.before = outside;
    waitForReaders({tiles.getResult(0), tiles.getResult(1)});
  }

private:
  Value narrow(Value index) {
    return arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(),
                                        index);
  }

  Value toIndex(Value number) {
    if (number.getType().isIndex())
      return number;
    return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                        number);
  }

  Value look(Value value) const { return ring.before.lookupOrDefault(value); }

  /// What a block computes before the loop.
  void cloneOps(Block *block) {
    for (Operation *op : ops)
      if (op->getBlock() == block)
        builder.clone(*op, ring.before);
  }

  /// A loop like `op` from `begin` on, whose body follows.
  scf::ForOp createLoop(scf::ForOp op, Value begin, ValueRange carried) {
    auto made =
        scf::ForOp::create(builder, loc, begin, look(op.getUpperBound()),
                           look(op.getStep()), carried);
    builder.setInsertionPointToStart(made.getBody());
    return made;
  }

  /// The copies of the first iterations, up to one for each place: of what no
  /// launch before writes without waiting for it. Returns how many not to make
  /// again.
  Value fillFirst() {
    IRMapping outside = ring.before;
    if (around) {
      Value first = look(around.getLowerBound());
      ring.before.map(around.getInductionVar(), first);
      cloneOps(ring.loop->getBlock());
      Value exists =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, first,
                                look(around.getUpperBound()));
      Value upper = ring.loop.getUpperBound();
      ring.before.map(upper,
                      arith::SelectOp::create(builder, loc, exists, look(upper),
                                              look(ring.loop.getLowerBound())));
    }
    auto fill = [&](bool isConstant) {
      ring.forFirst(
          builder, look(ring.loop.getLowerBound()), ring.numStages,
          [&](Value number, Value place) {
            if (isConstant)
              MbarrierExpectBytesOp::create(builder, loc, ring.full, place,
                                            ring.loads.getStageBytes());
            ring.copyAll(builder, number, place, [&](const StagedLoad &load) {
              return load.isConstant == isConstant;
            });
          });
    };
    fill(true);
    WaitForDependenciesOp::create(builder, loc);
    fill(false);
    // Where all is one loop, nothing is left of fewer.
    bool counts = around || ring.loads.numBlocks > 1;
    Value count = counts ? ring.countFirst(builder)
                         : ring.buildIndex(builder, ring.numStages);
    ring.before = outside;
    return count;
  }

  /// The copies of all iterations but for the first `count`, from `first` on;
  /// returns the place after them.
  RingPlace produce(RingPlace first, Value count) {
    Value begin =
        ring.getIteration(builder, look(ring.loop.getLowerBound()), count);
    auto all = createLoop(ring.loop, begin, {first.place, first.parity});
    RingPlace current = {all.getRegionIterArg(0), all.getRegionIterArg(1)};
    Value place = toIndex(current.place), parity = toIndex(current.parity);
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
    RingPlace next = ring.getNext(builder, current);
    scf::YieldOp::create(builder, loc, ValueRange{next.place, next.parity});
    builder.setInsertionPointAfter(all);
    return {all.getResult(0), all.getResult(1)};
  }

  /// Where other blocks arrive at this one's mbarriers: until all have read
  /// what was copied to each place, of which `next` is used next.
  void waitForReaders(RingPlace next) {
    if (ring.loads.numBlocks == 1)
      return;
    auto places = scf::ForOp::create(builder, loc, ring.buildIndex(builder, 0),
                                     ring.buildIndex(builder, ring.numStages),
                                     ring.buildIndex(builder, 1),
                                     ValueRange{next.place, next.parity});
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(places.getBody());
    RingPlace at = {places.getRegionIterArg(0), places.getRegionIterArg(1)};
    Value before = arith::XOrIOp::create(builder, loc, toIndex(at.parity),
                                         ring.buildIndex(builder, 1));
    MbarrierWaitOp::create(builder, loc, empty, toIndex(at.place), before);
    RingPlace after = ring.getNext(builder, at);
    scf::YieldOp::create(builder, loc, ValueRange{after.place, after.parity});
  }

  LoopRing &ring;
  Location loc;
  Value empty;
  /// Says that what the block keeps is there; null where nothing is needed.
  Value kept;
  /// Null if there is none.
  scf::ForOp around;
  OpBuilder builder;
  /// What the copies need of what stands before the loop.
  llvm::SetVector<Operation *> ops;
};

} // namespace

void lowlp::buildProducer(LoopRing &ring, ProducerWarpOp producer, Value empty,
                          Value kept) {
  Producer(ring, producer, empty, kept).run();
}
