//===- ChooseRings.cpp - lowlp-choose-rings -------------------------------===//
//
// Which loads of a loop go through rings, how those lie in shared memory, and
// who fills them. Nothing is moved here: the choice is left in attributes
// (LowlpRings.td), which lowlp-pipeline carries out.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "RingAttributes.h"
#include "RingProducer.h"

#include "lowlp/Target/TargetInfo.h"
#include "lowlp/Transforms/Passes.h"

#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-choose-rings"

namespace lowlp {
#define GEN_PASS_DEF_CHOOSERINGS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

namespace {
struct ChooseRings : lowlp::impl::ChooseRingsBase<ChooseRings> {
  using Base::Base;

  void runOnOperation() override {
    const TargetInfo *target = TargetInfo::lookupFor(getOperation(), arch);
    if (!target)
      return signalPassFailure();
    bool hasTensorCopies = target->getSupport(Feature::TensorCopy).isNative();
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (loop->hasAttr(LowlpDialect::kStagesAttrName))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      auto stages =
          loop->getAttrOfType<StagesAttr>(LowlpDialect::kStagesAttrName);
      loop->removeAttr(LowlpDialect::kStagesAttrName);
      int64_t numBlocks = MulticastAttr::countBlocks(loop);
      loop->removeAttr(MulticastAttr::kName);
      if (failed(verifyPlace(loop)))
        return signalPassFailure();
      // What stands there was chosen by hand.
      if (!loop->hasAttr(RingsAttr::kName))
        choose(loop, stages, hasTensorCopies, numBlocks);
    }
  }

private:
  static LogicalResult verifyPlace(scf::ForOp loop) {
    if (!hasPlaceForRings(loop))
      return loop.emitOpError("has stages, and must stand in the body of the "
                              "kernel itself or of a loop there, but is in a ")
             << getOutermost(loop)->getParentOp()->getName();
    WalkResult ends = loop.walk([](ExitOp) { return WalkResult::interrupt(); });
    if (ends.wasInterrupted())
      return loop.emitOpError("has stages, and must not end the block by "
                              "lowlp.exit: copies are in flight");
    return success();
  }

  void choose(scf::ForOp loop, StagesAttr stages, bool hasTensorCopies,
              int64_t numBlocks) {
    PipelinedLoads loads = findPipelinedLoads(loop, hasTensorCopies);
    for (auto &[load, reason] : loads.left)
      decline(load, "stages", reason);
    if (loads.staged.empty())
      return decline(loop, "stages",
                     "no load of its body can be made ahead of its iteration");
    decline(loop, "tensor copies", loads.whyNotTensorCopies);
    RingCopies copies =
        loads.byTensorCopies ? RingCopies::FirstThread : RingCopies::AllThreads;
    if (stages.getProducer()) {
      std::string obstacle =
          loads.byTensorCopies ? findProducerObstacle(loop, loads)
                               : "it begins tensor copies, and there are none";
      decline(loop, "producer warp", obstacle);
      if (obstacle.empty())
        copies = RingCopies::ProducerWarp;
    }
    if (numBlocks > 1)
      chooseMulticast(loop, loads, copies, numBlocks);
    writeRings(loop, loads, stages.getCount(), copies);
    numRings += loads.staged.size();
  }

  /// Lets the blocks of a cluster copy for each other what is the same for all.
  static void chooseMulticast(scf::ForOp loop, PipelinedLoads &loads,
                              RingCopies copies, int64_t numBlocks) {
    for (StagedLoad &staged : loads.staged) {
      std::string obstacle =
          copies == RingCopies::ProducerWarp
              ? findMulticastObstacle(staged, loop, numBlocks)
              : "it is for the copies of a producer warp";
      decline(staged.load, "multicast", obstacle);
      staged.isMulticast = obstacle.empty();
    }
  }

  /// Nothing for no reason.
  static void decline(Operation *op, StringRef what,
                      const std::string &reason) {
    if (reason.empty())
      return;
    LDBG() << op->getName() << " without " << what << ": " << reason;
    remarkDeclined(op, DEBUG_TYPE, what, [&] { return reason; });
  }
};
} // namespace
