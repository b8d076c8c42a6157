//===- RingAttributes.cpp - the choice of rings in the IR -----------------===//
//
// What is written by hand is trusted in nothing: loads must be such as can be
// made ahead, and lie in memory as their positions say.
//
//===----------------------------------------------------------------------===//
#include "RingAttributes.h"

using namespace mlir;
using namespace lowlp;

void lowlp::writeRings(scf::ForOp loop, const PipelinedLoads &loads,
                       int64_t numStages, RingCopies copies) {
  MLIRContext *context = loop.getContext();
  SmallVector<Type> tiles;
  SmallVector<int64_t> multicast;
  for (auto [number, staged] : llvm::enumerate(loads.staged)) {
    tiles.push_back(staged.getRingType(numStages));
    if (staged.isMulticast)
      multicast.push_back(static_cast<int64_t>(number));
    for (StagedLoad::Part part : staged.parts)
      part.load->setDiscardableAttr(
          RingAttr::kName,
          RingAttr::get(context, static_cast<int64_t>(number), part.position));
  }
  loop->setDiscardableAttr(RingsAttr::kName,
                           RingsAttr::get(context, copies, tiles, multicast));
}

/// The loads of the loop that have a ring, by its number.
static FailureOr<SmallVector<SmallVector<LoadGlobalOp>>>
collectLoads(scf::ForOp loop, RingsAttr rings) {
  SmallVector<SmallVector<LoadGlobalOp>> loads(rings.getTiles().size());
  WalkResult result = loop->walk([&](LoadGlobalOp load) {
    auto ring = load->getAttrOfType<RingAttr>(RingAttr::kName);
    if (!ring)
      return WalkResult::advance();
    if (load->getBlock() != loop.getBody()) {
      load.emitOpError("has a ring, and must stand in the body of the loop "
                       "itself");
      return WalkResult::interrupt();
    }
    if (static_cast<size_t>(ring.getRing()) >= loads.size()) {
      load.emitOpError("has ring ")
          << ring.getRing() << ", but the loop has " << loads.size();
      return WalkResult::interrupt();
    }
    loads[ring.getRing()].push_back(load);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return loads;
}

static RingAttr getRing(LoadGlobalOp load) {
  return load->getAttrOfType<RingAttr>(RingAttr::kName);
}

static bool isAtBegin(LoadGlobalOp load) {
  return llvm::all_of(getRing(load).getPosition(),
                      [](int64_t along) { return along == 0; });
}

/// Whether the tile, which begins at its position, lies within the copy.
static bool isWithin(LoadGlobalOp load, ArrayRef<int64_t> copied) {
  ArrayRef<int64_t> position = getRing(load).getPosition();
  ArrayRef<int64_t> extents = load.getTile().getType().getShape();
  if (position.size() != copied.size() || extents.size() > copied.size())
    return false;
  for (size_t d = 0; d < copied.size(); ++d) {
    size_t missing = copied.size() - extents.size();
    int64_t extent = d < missing ? 1 : extents[d - missing];
    if (position[d] + extent > copied[d])
      return false;
  }
  return true;
}

/// One ring with the loads that read it.
static FailureOr<StagedLoad> takeRing(scf::ForOp loop, SharedType tile,
                                      ArrayRef<LoadGlobalOp> loads,
                                      size_t number) {
  const auto *begin = llvm::find_if(loads, isAtBegin);
  if (begin == loads.end())
    return loop.emitOpError("has no load at the begin of ring ") << number;
  LoadGlobalOp first = *begin;
  Result<StagedLoad> found = getStagedLoad(first, loop);
  if (!found)
    return first.emitOpError("has a ring, but cannot be made ahead: ")
           << found.error();
  StagedLoad staged = *found;
  size_t rank = getRing(first).getPosition().size();
  int64_t outer = tile.getRank() - static_cast<int64_t>(rank);
  if (outer < 1 || outer > 2 || rank > first.getOffsets().size() ||
      tile.getElementType() != first.getTile().getType().getElementType())
    return first.emitOpError("does not fit its ring ") << tile;
  staged.ringType = tile;
  staged.shape.assign(tile.getShape().end() - rank, tile.getShape().end());
  staged.parts.clear();
  for (LoadGlobalOp load : loads) {
    ArrayRef<int64_t> position = getRing(load).getPosition();
    if (!isWithin(load, staged.shape))
      return load.emitOpError("reaches beyond its part of the ring ") << tile;
    if (Result<StagedLoad> part = getStagedLoad(load, loop); !part)
      return load.emitOpError("has a ring, but cannot be made ahead: ")
             << part.error();
    SmallVector<int64_t> expected(first.getOffsets().size() - rank, 0);
    llvm::append_range(expected, position);
    std::optional<SmallVector<int64_t>> distance = getDistance(first, load);
    if (!distance || *distance != expected)
      return load.emitOpError("does not lie at [")
             << position << "] of what the first load of its ring begins";
    staged.parts.push_back({load, SmallVector<int64_t>(position)});
  }
  return staged;
}

/// Which rings are filled by multicast.
static LogicalResult takeMulticast(scf::ForOp loop, RingsAttr rings,
                                   PipelinedLoads &taken) {
  if (rings.getMulticast().empty())
    return success();
  auto kernel = loop->getParentOfType<KernelOp>();
  taken.numBlocks = kernel.getScheduleOrDefault().getCluster();
  if (taken.numBlocks == 1)
    return loop.emitOpError("has rings that multicast fills, but the kernel "
                            "has no clusters");
  for (int64_t ring : rings.getMulticast()) {
    StagedLoad &staged = taken.staged[static_cast<size_t>(ring)];
    std::string obstacle = findMulticastObstacle(staged, loop, taken.numBlocks);
    if (!obstacle.empty())
      return staged.load.emitOpError("has a ring that multicast fills, but ")
             << obstacle;
    staged.isMulticast = true;
  }
  return success();
}

FailureOr<PipelinedLoads> lowlp::takeRings(scf::ForOp loop, RingsAttr rings,
                                           bool hasTensorCopies) {
  auto loads = collectLoads(loop, rings);
  if (failed(loads))
    return failure();
  PipelinedLoads taken;
  taken.byTensorCopies = rings.getCopies() != RingCopies::AllThreads;
  if (taken.byTensorCopies && !hasTensorCopies)
    return loop.emitOpError("has rings that tensor copies fill, which the "
                            "architecture does not have");
  for (auto [number, type] : llvm::enumerate(rings.getTiles())) {
    FailureOr<StagedLoad> staged =
        takeRing(loop, cast<SharedType>(type), (*loads)[number], number);
    if (failed(staged))
      return failure();
    if (hasTensorCopies && taken.whyNotTensorCopies.empty())
      taken.whyNotTensorCopies = findObstacle(staged->load);
    taken.staged.push_back(std::move(*staged));
  }
  if (taken.byTensorCopies && !taken.whyNotTensorCopies.empty())
    return loop.emitOpError("has rings that tensor copies fill, but ")
           << taken.whyNotTensorCopies;
  if (failed(takeMulticast(loop, rings, taken)))
    return failure();
  for (const SmallVector<LoadGlobalOp> &ring : *loads)
    for (LoadGlobalOp load : ring)
      load->removeDiscardableAttr(RingAttr::kName);
  loop->removeDiscardableAttr(RingsAttr::kName);
  return taken;
}
