//===- PipelineLoops.cpp - lowlp-pipeline ---------------------------------===//
//
// A loop with rings runs over S places in shared memory. Iteration i reads
// place i mod S; the part of iteration i + S - 1 goes to the place of iteration
// i - 1, when everybody has read that:
//
//   iteration   0    1    2    3    4          S = 3
//   place       0    1    2    0    1
//   copies of   2    3    4    .    .          0 and 1 go before the loop
//
// By tensor copies, mbarriers hand the places to and fro, one pair for each:
//
//   full    the copies complete it         everybody waits before reading
//   empty   each warp arrives when it      the first thread waits before it
//           has read                       begins to copy
//
// With a producer, the first thread of one more warp does nothing but this, in
// a loop of its own (RingProducer.cpp). With multicast each block of a cluster
// makes an equal part of a copy for all of them, so warps arrive at the
// mbarrier `empty` of every block, and a producer ends when all have arrived at
// its own: until then its block must be there.
//
// By asynchronous copies of all threads, a barrier of the block in each
// iteration stands for both.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "RingAttributes.h"
#include "RingProducer.h"

#include "lowlp/IR/Report.h"
#include "lowlp/Target/TargetInfo.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#include <map>

#define DEBUG_TYPE "lowlp-pipeline"

namespace lowlp {
#define GEN_PASS_DEF_PIPELINELOOPS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kThreadsPerWarp = 32;

namespace {

/// Gives one loop its rings.
class Pipeliner : LoopRing {
public:
  Pipeliner(scf::ForOp loop, int64_t numStages, bool hasProducer,
            PipelinedLoads loads)
      : LoopRing(loop, numStages, std::move(loads)),
        kernel(loop->getParentOfType<KernelOp>()), hasProducer(hasProducer) {}

  void run() {
    for (StagedLoad &load : loads.staged)
      load.shared = allocate(load);
    if (loads.byTensorCopies)
      allocateBarriers();
    if (hasProducer)
      buildProducer(*this, producer, empty, kept);
    if (kept) {
      OpBuilder builder(getOutermost(loop));
      MbarrierArriveOp::create(builder, loc, kept, buildIndex(builder, 0));
    }
    RingPlace first = carryPlaceAround();
    if (!hasProducer)
      fillFirst(first);
    carryPlace(first);
    OpBuilder builder = OpBuilder::atBlockBegin(loop.getBody());
    if (loads.byTensorCopies) {
      if (!hasProducer)
        refillByTensorCopies(builder);
      MbarrierWaitOp::create(builder, loc, full, current.place, current.parity);
    } else {
      CopyAsyncWaitOp::create(builder, loc, numStages - 2);
      SynchronizeOp::create(builder, loc);
      refillByAsyncCopies(builder);
    }
    Operation *last = readPlaces();
    if (loads.byTensorCopies)
      releasePlace(last);
    else
      waitAfter();
  }

  std::string describe() const {
    std::string text =
        std::to_string(numStages) + " stages of " +
        std::to_string(loads.getStageBytes()) + " bytes by " +
        (loads.byTensorCopies ? "tensor copies" : "asynchronous copies");
    if (hasProducer)
      text += " of a producer warp";
    if (auto shared = llvm::count_if(loads.staged, [](const StagedLoad &load) {
          return load.isMulticast;
        }))
      text += ", " + std::to_string(shared) + " of " +
              std::to_string(loads.staged.size()) + " by multicast to " +
              std::to_string(loads.numBlocks) + " blocks";
    if (!loads.whyNotTensorCopies.empty())
      text += ": " + loads.whyNotTensorCopies;
    return text;
  }

private:
  //===--- What stands before the loop ------------------------------------===//

  Value allocate(const StagedLoad &load) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    return AllocSharedOp::create(builder, loc, load.ringType, IntegerAttr(),
                                 /*scratch=*/false);
  }

  void allocateBarriers() {
    llvm::SetVector<Operation *> keptTiles;
    if (hasProducer)
      keptTiles = getKeptTiles(loop, loads);
    // In front of the producer.
    for (Operation *tile : keptTiles)
      tile->moveBefore(&kernel.getBody().front().front());
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    auto numThreads = static_cast<int64_t>(kernel.getNumThreads());
    int64_t numWarps = numThreads / kThreadsPerWarp;
    auto make = [&](int64_t count, int64_t arrivals, bool byWarps) {
      auto type = MbarriersType::get(builder.getContext(), count);
      return AllocMbarriersOp::create(builder, loc, type, arrivals, byWarps)
          .getBarriers();
    };
    full = make(numStages, 1, /*byWarps=*/false);
    empty = make(numStages, numWarps * loads.numBlocks, /*byWarps=*/true);
    if (loads.numBlocks > 1)
      markMulticast(empty.getDefiningOp());
    // Each thread arrives for what it stored, so that racecheck can follow it.
    if (!keptTiles.empty())
      kept = make(1, numThreads, /*byWarps=*/false);
    // After all that the copies use.
    Operation *last = full.getDefiningOp();
    while (isa<AllocSharedOp, AllocMbarriersOp>(last))
      last = last->getNextNode();
    builder.setInsertionPoint(last);
    if (hasProducer)
      producer = createProducer(builder);
    else if (!isa<ProducerWarpOp>(last)) // another loop's, which waits too
      SynchronizeOp::create(builder, loc);
  }

  ProducerWarpOp createProducer(OpBuilder &builder) {
    auto made = ProducerWarpOp::create(builder, loc);
    if (loads.numBlocks > 1)
      markMulticast(made);
    return made;
  }

  /// Begins to fill all places but one, from `first` on. What no launch before
  /// writes need not wait for it.
  void fillFirst(RingPlace first) {
    OpBuilder builder(loop);
    if (!loads.byTensorCopies) {
      // Of the loop before everybody must have read the last places.
      if (getLoopAround(loop))
        SynchronizeOp::create(builder, loc);
      forFirst(builder, loop.getLowerBound(), numStages - 1,
               [&](Value number, Value place) {
                 copyAll(builder, number, place,
                         [](const StagedLoad &) { return true; });
               });
      return;
    }
    if (getLoopAround(loop))
      return refillFirst(builder, first);
    WaitForDependenciesOp wait = findWaitBefore(loop);
    fillFirstBy(builder, /*announces=*/true, [&](const StagedLoad &load) {
      return !wait || load.isConstant;
    });
    if (!wait)
      return;
    wait->moveBefore(loop);
    fillFirstBy(builder, /*announces=*/false,
                [&](const StagedLoad &load) { return !load.isConstant; });
  }

  void fillFirstBy(OpBuilder &builder, bool announces, IsMeant isMeant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop);
    enterFirstThread(builder);
    forFirst(builder, loop.getLowerBound(), numStages - 1,
             [&](Value number, Value place) {
               if (announces)
                 MbarrierExpectBytesOp::create(builder, loc, full, place,
                                               loads.getStageBytes());
               copyAll(builder, number, place, isMeant);
             });
  }

  /// In a loop: begins to fill all places but one, each when it is empty.
  void refillFirst(OpBuilder &builder, RingPlace first) {
    OpBuilder::InsertionGuard guard(builder);
    enterFirstThread(builder);
    auto places = scf::ForOp::create(builder, loc, buildIndex(builder, 0),
                                     buildIndex(builder, numStages - 1),
                                     buildIndex(builder, 1),
                                     ValueRange{first.place, first.parity});
    builder.setInsertionPointToStart(places.getBody());
    RingPlace at = {places.getRegionIterArg(0), places.getRegionIterArg(1)};
    RingPlace next = getNext(builder, at);
    Value number =
        getIteration(builder, loop.getLowerBound(), places.getInductionVar());
    auto exists = scf::IfOp::create(builder, loc, isInLoop(builder, number),
                                    /*withElseRegion=*/false);
    scf::YieldOp::create(builder, loc, ValueRange{next.place, next.parity});
    builder.setInsertionPointToStart(exists.thenBlock());
    Value before =
        arith::XOrIOp::create(builder, loc, at.parity, buildIndex(builder, 1));
    refill(builder, number, {at.place, before});
  }

  void enterFirstThread(OpBuilder &builder) {
    auto alone = FirstThreadOp::create(builder, loc);
    builder.createBlock(&alone.getBody());
  }

  //===--- What an iteration does -----------------------------------------===//

  using NextPlace = function_ref<RingPlace(OpBuilder &, RingPlace)>;

  /// Lets a loop carry a place and its round; returns those in its body.
  static RingPlace carry(scf::ForOp &op, RingPlace first, NextPlace next) {
    IRRewriter rewriter(op.getContext());
    rewriter.setInsertionPoint(op);
    auto yields = [&](OpBuilder &builder, Location,
                      ArrayRef<BlockArgument> carried) -> SmallVector<Value> {
      RingPlace after = next(builder, {carried[0], carried[1]});
      return {after.place, after.parity};
    };
    auto wider = *op.replaceWithAdditionalYields(
        rewriter, ValueRange{first.place, first.parity},
        /*replaceInitOperandUsesInLoop=*/false, yields);
    op = cast<scf::ForOp>(wider.getOperation());
    auto carried = op.getRegionIterArgs().take_back(2);
    return {carried[0], carried[1]};
  }

  /// Where the loop begins. A loop around it carries that, where the rounds of
  /// mbarriers go on; what it yields follows in `carryPlace`.
  RingPlace carryPlaceAround() {
    scf::ForOp around = getLoopAround(loop);
    OpBuilder builder(around ? around : loop);
    Value zero = buildIndex(builder, 0);
    if (!around || !loads.byTensorCopies)
      return {zero, zero};
    return carry(around, {zero, zero},
                 [](OpBuilder &, RingPlace place) { return place; });
  }

  /// Lets the loop carry which place an iteration reads, and in which round.
  void carryPlace(RingPlace first) {
    current = carry(loop, first, [&](OpBuilder &builder, RingPlace place) {
      return getNext(builder, place);
    });
    if (scf::ForOp around = getLoopAround(loop);
        around && loads.byTensorCopies) {
      Operation *yield = around.getBody()->getTerminator();
      unsigned count = yield->getNumOperands();
      yield->setOperands(count - 2, 2, loop.getResults().take_back(2));
    }
  }

  /// The place of the iteration before, whose round is that of this one but
  /// for the last place.
  RingPlace getFree(OpBuilder &builder) {
    Value one = buildIndex(builder, 1);
    Value isFirst =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              current.place, buildIndex(builder, 0));
    Value earlier = arith::SubIOp::create(builder, loc, current.place, one);
    Value other = arith::XOrIOp::create(builder, loc, current.parity, one);
    return {
        arith::SelectOp::create(builder, loc, isFirst,
                                buildIndex(builder, numStages - 1), earlier),
        arith::SelectOp::create(builder, loc, isFirst, other, current.parity)};
  }

  /// Calls `body` where an iteration follows S - 1 after this one.
  void ifMoreFollow(OpBuilder &builder, function_ref<void(Value)> body) {
    OpBuilder::InsertionGuard guard(builder);
    Value next = getIteration(builder, loop.getInductionVar(),
                              buildIndex(builder, numStages - 1));
    auto exists = scf::IfOp::create(builder, loc, isInLoop(builder, next),
                                    /*withElseRegion=*/false);
    builder.setInsertionPointToStart(exists.thenBlock());
    body(next);
  }

  void refillByTensorCopies(OpBuilder &builder) {
    OpBuilder::InsertionGuard guard(builder);
    enterFirstThread(builder);
    ifMoreFollow(builder,
                 [&](Value next) { refill(builder, next, getFree(builder)); });
  }

  /// Begins the copies of an iteration into a place, when that has been read in
  /// its last round.
  void refill(OpBuilder &builder, Value number, RingPlace place) {
    // Of a place that nobody has used, the round before counts as done.
    MbarrierWaitOp::create(builder, loc, empty, place.place, place.parity);
    MbarrierExpectBytesOp::create(builder, loc, full, place.place,
                                  loads.getStageBytes());
    copyAll(builder, number, place.place,
            [](const StagedLoad &) { return true; });
  }

  void refillByAsyncCopies(OpBuilder &builder) {
    ifMoreFollow(builder, [&](Value next) {
      copyAll(builder, next, getFree(builder).place,
              [](const StagedLoad &) { return true; });
    });
    CopyAsyncCommitOp::create(builder, loc);
  }

  /// Loads come from the ring; returns the last of them. What several load is
  /// read once.
  Operation *readPlaces() {
    Operation *last = nullptr;
    for (StagedLoad &staged : loads.staged) {
      std::map<SmallVector<int64_t>, Value> known;
      for (StagedLoad::Part &part : staged.parts) {
        Value &read = known[part.position];
        if (!read) {
          OpBuilder builder(part.load);
          read = LoadSharedOp::create(
              builder, part.load.getLoc(), part.load.getTile().getType(),
              staged.shared,
              getOffsets(builder, staged, current.place, part.position),
              /*in_bounds=*/true);
        }
        part.load.replaceAllUsesWith(read);
        part.load.erase();
        if (!last || last->isBeforeInBlock(read.getDefiningOp()))
          last = read.getDefiningOp();
      }
    }
    return last;
  }

  /// After the last read, and before what is done at the end of few iterations
  /// only.
  void releasePlace(Operation *last) {
    Operation *point = last->getNextNode();
    while (!point->hasTrait<OpTrait::IsTerminator>() &&
           point->getNumRegions() == 0)
      point = point->getNextNode();
    OpBuilder builder(point);
    MbarrierArriveOp::create(builder, loc, empty, current.place);
  }

  void waitAfter() {
    OpBuilder builder(loop.getContext());
    builder.setInsertionPointAfter(loop);
    CopyAsyncWaitOp::create(builder, loc, 0);
  }

  KernelOp kernel;
  bool hasProducer;
  ProducerWarpOp producer;
  Value empty;
  /// Says that what the producer reads of shared memory is there; null where
  /// it reads nothing.
  Value kept;
  RingPlace current;
};

struct PipelineLoops : lowlp::impl::PipelineLoopsBase<PipelineLoops> {
  using Base::Base;

  void runOnOperation() override {
    const TargetInfo *target = TargetInfo::lookupFor(getOperation(), arch);
    if (!target)
      return signalPassFailure();
    hasTensorCopies = target->getSupport(Feature::TensorCopy).isNative();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(RingsAttr::kName) ||
          loop->hasAttr(LowlpDialect::kStagesAttrName))
        loops.push_back(loop);
    });
    std::vector<std::string> notes;
    for (scf::ForOp loop : loops)
      if (failed(expand(loop, notes)))
        return signalPassFailure();
    if (!notes.empty())
      setReport(getOperation(), "pipelines", notes);
  }

private:
  LogicalResult expand(scf::ForOp loop, std::vector<std::string> &notes) {
    auto rings = loop->getAttrOfType<RingsAttr>(RingsAttr::kName);
    if (!rings)
      return loop.emitOpError("has lowlp.stages and no lowlp.rings, which "
                              "lowlp-choose-rings chooses");
    if (!hasPlaceForRings(loop))
      return loop.emitOpError("has rings, and must stand in the body of the "
                              "kernel itself or of a loop there");
    bool hasProducer = rings.getCopies() == RingCopies::ProducerWarp;
    FailureOr<PipelinedLoads> loads = takeRings(loop, rings, hasTensorCopies);
    if (failed(loads))
      return failure();
    if (hasProducer)
      if (std::string obstacle = findProducerObstacle(loop, *loads);
          !obstacle.empty())
        return loop.emitOpError("has rings that a producer warp fills, but ")
               << obstacle;
    numLoads += loads->staged.size();
    ++numLoops;
    Pipeliner pipeliner(loop, rings.getNumStages(), hasProducer, *loads);
    notes.push_back(pipeliner.describe());
    LDBG() << notes.back();
    for (const StagedLoad &load : loads->staged)
      for (StagedLoad::Part part : load.parts)
        remarkDone(part.load, DEBUG_TYPE, "stages",
                   [&] { return notes.back(); });
    pipeliner.run();
    return success();
  }

  bool hasTensorCopies = false;
};

} // namespace
