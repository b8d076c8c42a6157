//===- PipelineLoops.cpp - lowlp-pipeline ---------------------------------===//
//
// A loop with stages runs over a ring of S places in shared memory. Iteration i
// reads place i mod S; the part of iteration i + S - 1 goes to the place of
// iteration i - 1, when everybody has read that:
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
// a loop of its own.
//
// By asynchronous copies of all threads, a barrier of the block in each
// iteration stands for both.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "PipelinedLoads.h"

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

static Value buildIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

namespace {

/// A place of the ring, and the parity of the round in which it is used.
struct RingPlace {
  Value place, parity;
};

/// Gives one loop its stages.
class Pipeliner {
public:
  Pipeliner(scf::ForOp loop, int64_t numStages, bool wantsProducer,
            PipelinedLoads loads)
      : loop(loop), kernel(loop->getParentOfType<KernelOp>()),
        loc(loop.getLoc()), numStages(numStages), loads(std::move(loads)) {
    if (wantsProducer)
      whyNoProducer = this->loads.byTensorCopies
                          ? findProducerObstacle()
                          : "it begins tensor copies, and there are none";
    hasProducer = wantsProducer && whyNoProducer.empty();
  }

  /// Adds what was decided to `notes`.
  void run(SmallVectorImpl<Attribute> &notes) {
    notes.push_back(describe());
    tell();
    for (StagedLoad &load : loads.staged)
      load.shared = allocate(load);
    if (loads.byTensorCopies)
      allocateBarriers();
    if (hasProducer)
      produce();
    else
      fillFirst();
    carryPlace();
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
      waitBehind();
  }

private:
  //===--- What stands before the loop ------------------------------------===//

  Value allocate(const StagedLoad &load) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    return AllocSharedOp::create(builder, loc, load.getRingType(numStages),
                                 IntegerAttr(),
                                 /*scratch=*/false);
  }

  void allocateBarriers() {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    auto type = MbarriersType::get(builder.getContext(), numStages);
    auto make = [&](int64_t arrivals, bool byWarps) {
      return AllocMbarriersOp::create(builder, loc, type, arrivals, byWarps)
          .getBarriers();
    };
    full = make(1, /*byWarps=*/false);
    empty = make(static_cast<int64_t>(kernel.getNumThreads()) / kThreadsPerWarp,
                 /*byWarps=*/true);
    // Behind all that the copies use.
    Operation *last = full.getDefiningOp();
    while (isa<AllocSharedOp, AllocMbarriersOp>(last))
      last = last->getNextNode();
    builder.setInsertionPoint(last);
    if (hasProducer)
      producer = ProducerWarpOp::create(builder, loc);
    else if (!isa<ProducerWarpOp>(last)) // another loop's, which waits too
      SynchronizeOp::create(builder, loc);
  }

  //===--- A producer -----------------------------------------------------===//

  /// Why what the copies need cannot be computed at the begin of the kernel, or
  /// the other warps may not come to the loop; empty where a producer can be.
  std::string findProducerObstacle() {
    std::string obstacle;
    kernel.walk([&](Operation *op) {
      if (isa<ProducerWarpOp>(op))
        obstacle = "the kernel has a producer warp already";
      else if (isa<ExitOp>(op))
        obstacle = "lowlp.exit may end the block before the loop";
    });
    if (!obstacle.empty())
      return obstacle;
    // It would not know what it has to wait for.
    bool waits =
        !kernel.getBody().front().getOps<WaitForDependenciesOp>().empty();
    if (waits && !sinkWait())
      return "more than arithmetic stands between the wait for the launch "
             "before and the loop";
    llvm::SetVector<Operation *> ops;
    if (!collectBefore(ops))
      return "what its copies need is not computed by arithmetic alone";
    return "";
  }

  /// Adds to `ops` what before the loop computes what the copies need, in
  /// order.
  bool collectBefore(llvm::SetVector<Operation *> &ops) {
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
    for (StagedLoad &load : loads.staged) {
      isPossible = isPossible && collect(load.load.getSource()) &&
                   llvm::all_of(load.load.getOffsets(), collect);
      for (Operation *op : load.addressOps)
        isPossible = isPossible && llvm::all_of(op->getOperands(), collect);
    }
    return isPossible;
  }

  /// Lets one more warp make all copies.
  void produce() {
    llvm::SetVector<Operation *> ops;
    collectBefore(ops);
    OpBuilder builder(loop.getContext());
    builder.createBlock(&producer.getBody());
    for (Operation *op : ops)
      builder.clone(*op, before);
    Value begin = before.lookupOrDefault(loop.getLowerBound());
    if (sinkWait()) {
      // What no launch before writes need not wait for it.
      auto fill = [&](bool isConstant) {
        forFirst(builder, begin, numStages, [&](Value number, Value place) {
          if (isConstant)
            MbarrierExpectBytesOp::create(builder, loc, full, place,
                                          loads.getStageBytes());
          copyAll(builder, number, place, [&](const StagedLoad &load) {
            return load.isConstant == isConstant;
          });
        });
      };
      fill(true);
      WaitForDependenciesOp::create(builder, loc);
      fill(false);
      begin = getIteration(builder, begin, buildIndex(builder, loc, numStages));
      produceAll(builder, begin, /*round=*/1);
      return;
    }
    produceAll(builder, begin, /*round=*/0);
  }

  /// The copies of all iterations from `begin` on, which is the first of a
  /// round.
  void produceAll(OpBuilder &builder, Value begin, int64_t round) {
    OpBuilder::InsertionGuard guard(builder);
    auto all = scf::ForOp::create(builder, loc, begin,
                                  before.lookupOrDefault(loop.getUpperBound()),
                                  before.lookupOrDefault(loop.getStep()),
                                  ValueRange{buildIndex(builder, loc, 0),
                                             buildIndex(builder, loc, round)});
    builder.setInsertionPointToStart(all.getBody());
    Value place = all.getRegionIterArg(0), parity = all.getRegionIterArg(1);
    // Beside the wait, not behind it.
    IRMapping mapping = mapAddresses(builder, all.getInductionVar());
    Value one = buildIndex(builder, loc, 1);
    // Of a place that nobody has used, the round before counts as done.
    MbarrierWaitOp::create(builder, loc, empty, place,
                           arith::XOrIOp::create(builder, loc, parity, one));
    MbarrierExpectBytesOp::create(builder, loc, full, place,
                                  loads.getStageBytes());
    for (const StagedLoad &load : loads.staged)
      copy(builder, load, place, mapping);
    RingPlace next = getNext(builder, {place, parity});
    scf::YieldOp::create(builder, loc, ValueRange{next.place, next.parity});
  }

  //===--- The first thread -----------------------------------------------===//

  /// Begins to fill all places but one. What no launch before writes need not
  /// wait for it.
  void fillFirst() {
    OpBuilder builder(loop);
    if (!loads.byTensorCopies) {
      forFirst(builder, loop.getLowerBound(), numStages - 1,
               [&](Value number, Value place) {
                 copyAll(builder, number, place,
                         [](const StagedLoad &) { return true; });
               });
      return;
    }
    WaitForDependenciesOp wait = sinkWait();
    fillFirstBy(builder, /*announces=*/true, [&](const StagedLoad &load) {
      return !wait || load.isConstant;
    });
    if (!wait)
      return;
    wait->moveBefore(loop);
    fillFirstBy(builder, /*announces=*/false,
                [&](const StagedLoad &load) { return !load.isConstant; });
  }

  void fillFirstBy(OpBuilder &builder, bool announces,
                   function_ref<bool(const StagedLoad &)> isMeant) {
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

  /// A wait for the launch before in front of the loop that could as well stand
  /// at the loop; null if there is none.
  WaitForDependenciesOp sinkWait() {
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

  void enterFirstThread(OpBuilder &builder) {
    auto alone = FirstThreadOp::create(builder, loc);
    builder.createBlock(&alone.getBody());
  }

  /// Calls `body` in a loop over the first `count` iterations that there are.
  void forFirst(OpBuilder &builder, Value begin, int64_t count,
                function_ref<void(Value, Value)> body) {
    OpBuilder::InsertionGuard guard(builder);
    Value zero = buildIndex(builder, loc, 0), one = buildIndex(builder, loc, 1);
    auto first = scf::ForOp::create(builder, loc, zero,
                                    buildIndex(builder, loc, count), one);
    builder.setInsertionPointToStart(first.getBody());
    Value place = first.getInductionVar();
    Value number = getIteration(builder, begin, place);
    auto exists = scf::IfOp::create(builder, loc, isInLoop(builder, number),
                                    /*withElseRegion=*/false);
    builder.setInsertionPointToStart(exists.thenBlock());
    body(number, place);
    if (loads.byTensorCopies)
      return;
    // Each iteration waits for a group, so each fills one.
    builder.setInsertionPointAfter(exists);
    CopyAsyncCommitOp::create(builder, loc);
  }

  //===--- What an iteration does -----------------------------------------===//

  /// The value of the induction variable `steps` iterations behind `from`.
  Value getIteration(OpBuilder &builder, Value from, Value steps) {
    Value distance = arith::MulIOp::create(
        builder, loc, steps, before.lookupOrDefault(loop.getStep()));
    return arith::AddIOp::create(builder, loc, from, distance);
  }

  Value isInLoop(OpBuilder &builder, Value number) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                 number,
                                 before.lookupOrDefault(loop.getUpperBound()));
  }

  /// Lets the loop carry which place an iteration reads, and in which round.
  void carryPlace() {
    IRRewriter rewriter(loop.getContext());
    rewriter.setInsertionPoint(loop);
    Value zero = buildIndex(rewriter, loc, 0);
    auto yields = [&](OpBuilder &builder, Location loc,
                      ArrayRef<BlockArgument> carried) -> SmallVector<Value> {
      RingPlace next = getNext(builder, {carried[0], carried[1]});
      return {next.place, next.parity};
    };
    auto wider = *loop.replaceWithAdditionalYields(
        rewriter, ValueRange{zero, zero},
        /*replaceInitOperandUsesInLoop=*/false, yields);
    loop = cast<scf::ForOp>(wider.getOperation());
    auto carried = loop.getRegionIterArgs().take_back(2);
    current = {carried[0], carried[1]};
  }

  /// The place of the iteration behind.
  RingPlace getNext(OpBuilder &builder, RingPlace place) {
    Value one = buildIndex(builder, loc, 1);
    Value next = arith::AddIOp::create(builder, loc, place.place, one);
    Value wraps =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next,
                              buildIndex(builder, loc, numStages));
    Value other = arith::XOrIOp::create(builder, loc, place.parity, one);
    return {arith::SelectOp::create(builder, loc, wraps,
                                    buildIndex(builder, loc, 0), next),
            arith::SelectOp::create(builder, loc, wraps, other, place.parity)};
  }

  /// The place of the iteration before, whose round is that of this one but
  /// for the last place.
  RingPlace getFree(OpBuilder &builder) {
    Value one = buildIndex(builder, loc, 1);
    Value isFirst =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              current.place, buildIndex(builder, loc, 0));
    Value before = arith::SubIOp::create(builder, loc, current.place, one);
    Value other = arith::XOrIOp::create(builder, loc, current.parity, one);
    return {
        arith::SelectOp::create(builder, loc, isFirst,
                                buildIndex(builder, loc, numStages - 1),
                                before),
        arith::SelectOp::create(builder, loc, isFirst, other, current.parity)};
  }

  /// Calls `body` where an iteration follows S - 1 behind this one.
  void ifMoreFollow(OpBuilder &builder, function_ref<void(Value)> body) {
    OpBuilder::InsertionGuard guard(builder);
    Value next = getIteration(builder, loop.getInductionVar(),
                              buildIndex(builder, loc, numStages - 1));
    auto exists = scf::IfOp::create(builder, loc, isInLoop(builder, next),
                                    /*withElseRegion=*/false);
    builder.setInsertionPointToStart(exists.thenBlock());
    body(next);
  }

  void refillByTensorCopies(OpBuilder &builder) {
    OpBuilder::InsertionGuard guard(builder);
    enterFirstThread(builder);
    ifMoreFollow(builder, [&](Value next) {
      RingPlace free = getFree(builder);
      // Of a place that nobody has used, the round before counts as done.
      MbarrierWaitOp::create(builder, loc, empty, free.place, free.parity);
      MbarrierExpectBytesOp::create(builder, loc, full, free.place,
                                    loads.getStageBytes());
      copyAll(builder, next, free.place,
              [](const StagedLoad &) { return true; });
    });
  }

  void refillByAsyncCopies(OpBuilder &builder) {
    ifMoreFollow(builder, [&](Value next) {
      copyAll(builder, next, getFree(builder).place,
              [](const StagedLoad &) { return true; });
    });
    CopyAsyncCommitOp::create(builder, loc);
  }

  /// Begins the copies of iteration `number` to a place.
  void copyAll(OpBuilder &builder, Value number, Value place,
               function_ref<bool(const StagedLoad &)> isMeant) {
    IRMapping mapping = mapAddresses(builder, number, isMeant);
    for (const StagedLoad &load : loads.staged)
      if (isMeant(load))
        copy(builder, load, place, mapping);
  }

  /// Computes what the copies of iteration `number` need.
  IRMapping mapAddresses(
      OpBuilder &builder, Value number,
      function_ref<bool(const StagedLoad &)> isMeant = [](const StagedLoad &) {
        return true;
      }) {
    IRMapping mapping = before;
    mapping.map(loop.getInductionVar(), number);
    for (const StagedLoad &load : loads.staged) {
      if (!isMeant(load))
        continue;
      for (Operation *op : load.addressOps)
        if (!mapping.contains(op->getResult(0)))
          builder.clone(*op, mapping);
    }
    return mapping;
  }

  void copy(OpBuilder &builder, const StagedLoad &staged, Value place,
            const IRMapping &mapping) {
    LoadGlobalOp load = staged.load;
    SmallVector<Value> from;
    for (Value offset : load.getOffsets())
      from.push_back(mapping.lookupOrDefault(offset));
    SmallVector<Value> to = getOffsets(builder, staged, place, {});
    ArrayRef<int64_t> shape = staged.shape;
    if (loads.byTensorCopies)
      CopyTensorOp::create(builder, loc,
                           mapping.lookupOrDefault(load.getSource()), from,
                           staged.shared, to, full, place, shape);
    else
      CopyAsyncOp::create(builder, loc, load.getSource(), from, staged.shared,
                          to, shape, load.getInBounds());
  }

  /// Where what lies at `position`, along its last dimensions, of a place
  /// begins in the ring.
  SmallVector<Value> getOffsets(OpBuilder &builder, const StagedLoad &load,
                                Value place, ArrayRef<int64_t> position) {
    auto rank = cast<SharedType>(load.shared.getType()).getRank();
    SmallVector<Value> offsets(rank, buildIndex(builder, loc, 0));
    offsets.front() = place;
    for (auto [d, number] : llvm::enumerate(position))
      offsets[rank - position.size() + d] = buildIndex(builder, loc, number);
    return offsets;
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

  /// Behind the last read, and before what is done at the end of few
  /// iterations only.
  void releasePlace(Operation *last) {
    Operation *point = last->getNextNode();
    while (!point->hasTrait<OpTrait::IsTerminator>() &&
           point->getNumRegions() == 0)
      point = point->getNextNode();
    OpBuilder builder(point);
    MbarrierArriveOp::create(builder, loc, empty, current.place);
  }

  void waitBehind() {
    OpBuilder builder(loop.getContext());
    builder.setInsertionPointAfter(loop);
    CopyAsyncWaitOp::create(builder, loc, 0);
  }

  /// Says of each load what it got, and what the loop did not get.
  void tell() {
    auto decline = [&](StringRef what, const std::string &reason) {
      if (!reason.empty())
        remarkDeclined(loop, DEBUG_TYPE, what, [&] { return reason; });
    };
    decline("tensor copies", loads.whyNotTensorCopies);
    decline("producer warp", whyNoProducer);
    for (const StagedLoad &load : loads.staged)
      for (StagedLoad::Part part : load.parts)
        remarkDone(part.load, DEBUG_TYPE, "stages",
                   [&] { return cast<StringAttr>(describe()).str(); });
  }

  Attribute describe() {
    std::string text =
        std::to_string(numStages) + " stages of " +
        std::to_string(loads.getStageBytes()) + " bytes by " +
        (loads.byTensorCopies ? "tensor copies" : "asynchronous copies");
    if (hasProducer)
      text += " of a producer warp";
    if (!loads.whyNotTensorCopies.empty())
      text += ": " + loads.whyNotTensorCopies;
    return StringAttr::get(loop.getContext(), text);
  }

  scf::ForOp loop;
  KernelOp kernel;
  Location loc;
  int64_t numStages;
  PipelinedLoads loads;
  bool hasProducer = false;
  /// Where one is wanted.
  std::string whyNoProducer;
  ProducerWarpOp producer;
  /// In the producer: what was computed before the loop.
  IRMapping before;
  Value full, empty;
  RingPlace current;
};

struct PipelineLoops : lowlp::impl::PipelineLoopsBase<PipelineLoops> {
  using Base::Base;

  void runOnOperation() override {
    const TargetInfo *target = TargetInfo::lookup(arch);
    if (!target) {
      getOperation().emitError() << TargetInfo::describeUnknown(arch);
      return signalPassFailure();
    }
    bool hasTensorCopies = target->getSupport(Feature::TensorCopy).isNative();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(LowlpDialect::kStagesAttrName))
        loops.push_back(loop);
    });
    SmallVector<Attribute> notes;
    for (scf::ForOp loop : loops) {
      auto stages =
          loop->getAttrOfType<StagesAttr>(LowlpDialect::kStagesAttrName);
      loop->removeAttr(LowlpDialect::kStagesAttrName);
      if (!isa<KernelOp>(loop->getParentOp())) {
        loop.emitOpError("has stages, and must stand in the body of the kernel "
                         "itself, but is in a ")
            << loop->getParentOp()->getName();
        return signalPassFailure();
      }
      WalkResult ends =
          loop.walk([](ExitOp) { return WalkResult::interrupt(); });
      if (ends.wasInterrupted()) {
        loop.emitOpError("has stages, and must not end the block by "
                         "lowlp.exit: copies are under way");
        return signalPassFailure();
      }
      PipelinedLoads loads = findPipelinedLoads(loop, hasTensorCopies);
      for (auto &[load, reason] : loads.left)
        decline(load, reason);
      if (loads.staged.empty()) {
        decline(loop, "no load of its body can be made ahead of its iteration");
        continue;
      }
      numLoads += loads.staged.size();
      ++numLoops;
      Pipeliner(loop, stages.getCount(), stages.getProducer(), std::move(loads))
          .run(notes);
    }
    if (!notes.empty())
      setReport(getOperation(), "pipelines",
                ArrayAttr::get(&getContext(), notes));
  }

  static void decline(Operation *op, const std::string &reason) {
    LDBG() << op->getName() << " without stages: " << reason;
    remarkDeclined(op, DEBUG_TYPE, "stages", [&] { return reason; });
  }
};

} // namespace
