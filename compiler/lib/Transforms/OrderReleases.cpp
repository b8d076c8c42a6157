//===- OrderReleases.cpp - lowlp-order-releases ---------------------------===//
//
// For each arrival of a warp: the loads of shared memory since the wait for its
// place; which of them each value depends on; and of the values that are used
// after the arrival, and so cost no register, the fewest that depend on all.
//
//===----------------------------------------------------------------------===//
#include "LoadsOfElements.h"
#include "PassRemarks.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-order-releases"

namespace lowlp {
#define GEN_PASS_DEF_ORDERRELEASES
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

/// Of more values the arrival would take as long as the fence.
static constexpr size_t kMostValues = 8;

namespace {

struct Element {
  Value value;
  int64_t place;
};

/// One arrival.
class Release {
public:
  explicit Release(simt::MbarrierArriveOp arrive) : arrive(arrive) {}

  /// The values to wait for; none where the fence has to stay, for `reason`.
  SmallVector<Element> choose();

  StringRef reason;

private:
  SmallVector<Element> decline(StringRef why) {
    reason = why;
    return {};
  }
  Operation *findWait();
  bool collectLoads(Block::iterator op, Block::iterator end);
  SmallVector<Element> collectCandidates();

  simt::MbarrierArriveOp arrive;
  LoadsOfElements loads;
  unsigned numLoads = 0;
  bool isMultiplying = false;
};

} // namespace

/// Whether blocks are numbered along x and y alone, as the arrival demands.
static bool isFlat(Operation *op) {
  auto function = op->getParentOfType<gpu::GPUFuncOp>();
  auto grid =
      function ? function->getAttrOfType<AffineMapAttr>("lowlp.grid") : nullptr;
  return grid && grid.getValue().getNumResults() < 3;
}

static bool isShared(Value pointer) {
  return cast<simt::PtrType>(pointer.getType()).getSpace() ==
         simt::MemorySpace::Shared;
}

/// The wait for the place of the ring that the arrival releases: what is read
/// of it is read after that.
Operation *Release::findWait() {
  for (Operation *op = arrive->getPrevNode(); op; op = op->getPrevNode())
    if (auto wait = dyn_cast<simt::MbarrierWaitOp>(op);
        wait && wait.getOffset() == arrive.getOffset())
      return wait;
  return nullptr;
}

/// Whether an op other than a load of shared memory may read what the arrival
/// releases. Products by warpgroups have read when they are waited for.
static bool mayRead(Operation *op) {
  if (isa<simt::LoadOp, simt::MbarrierWaitOp, simt::MbarrierArriveOp,
          simt::AssertOp, simt::BarrierOp, simt::TakeTurnOp, simt::GiveTurnOp,
          simt::WgmmaOp, simt::WgmmaFenceOp, simt::WgmmaCommitOp,
          simt::WgmmaWaitOp>(op))
    return false;
  return !isMemoryEffectFree(op) && (!isa<MemoryEffectOpInterface>(op) ||
                                     hasEffect<MemoryEffects::Read>(op));
}

/// Numbers the loads of some ops and follows them. False where other ops may
/// read.
bool Release::collectLoads(Block::iterator op, Block::iterator end) {
  for (; op != end; ++op) {
    auto load = dyn_cast<simt::LoadOp>(*op);
    if (isa<simt::WgmmaOp>(*op))
      isMultiplying = true;
    else if (auto wait = dyn_cast<simt::WgmmaWaitOp>(*op))
      isMultiplying &= wait.getN() != 0;
    if (isa<simt::LdMatrixOp>(*op) || (load && isShared(load.getBase()))) {
      loads.addLoad(&*op, numLoads++);
    } else if (isa<scf::IfOp>(*op)) {
      SmallVector<unsigned> begins(1, numLoads);
      for (Region &region : op->getRegions()) {
        if (!region.empty() &&
            !collectLoads(region.front().begin(), region.front().end()))
          return false;
        begins.push_back(numLoads);
      }
      loads.visitBranch(&*op, begins);
    } else if (mayRead(&*op)) {
      return false;
    } else {
      loads.visit(&*op);
    }
  }
  return true;
}

/// Elements of 32 bits that are made before the arrival and used after it.
SmallVector<Element> Release::collectCandidates() {
  SetVector<Value> values;
  for (Operation *op = arrive->getNextNode(); op; op = op->getNextNode())
    op->walk([&](Operation *nested) {
      for (Value value : nested->getOperands())
        if (Operation *made = value.getDefiningOp();
            made && made->getBlock() == arrive->getBlock() &&
            made->isBeforeInBlock(arrive) && !isa<simt::MmaOp>(made))
          values.insert(value);
    });
  SmallVector<Element> found;
  for (Value value : values)
    if (Type type = getElementTypeOrSelf(value.getType());
        type.isF32() || type.isInteger(32))
      for (int64_t i = 0, e = LoadsOfElements::countElements(value.getType());
           i != e; ++i)
        found.push_back({value, i});
  return found;
}

SmallVector<Element> Release::choose() {
  if (!isFlat(arrive))
    return decline("the grid has three dimensions, or none is known");
  Operation *wait = findWait();
  if (!wait)
    return decline("its place was waited for in another block");
  if (!collectLoads(wait->getIterator(), arrive->getIterator()))
    return decline("more than loads may read the stage");
  if (isMultiplying)
    return decline("products of a warpgroup are not waited for");

  SmallVector<Element> candidates = collectCandidates();
  SmallVector<Element> chosen;
  llvm::BitVector missing(numLoads, true);
  while (missing.any()) {
    const Element *best = nullptr;
    unsigned most = 0;
    for (const Element &one : candidates) {
      llvm::BitVector more = loads.get(one.value, one.place);
      more &= missing;
      if (more.count() > most) {
        most = more.count();
        best = &one;
      }
    }
    if (!best)
      return decline("no value that is used after it depends on all loads, but "
                     "for results of simt.mma");
    if (chosen.size() == kMostValues)
      return decline("more than 8 values depend on all loads");
    missing.reset(loads.get(best->value, best->place));
    chosen.push_back(*best);
  }
  if (chosen.empty())
    return decline("nothing is loaded");
  return chosen;
}

namespace {

struct OrderReleases : lowlp::impl::OrderReleasesBase<OrderReleases> {
  void runOnOperation() override {
    getOperation()->walk([&](simt::MbarrierArriveOp arrive) {
      if (!arrive.getByWarp() || !arrive.getAfter().empty())
        return;
      Release release(arrive);
      SmallVector<Element> chosen = release.choose();
      if (chosen.empty()) {
        LDBG() << "keeps its fence: " << arrive;
        remarkDeclined(arrive, DEBUG_TYPE, "values",
                       [&] { return release.reason.str(); });
        return;
      }
      OpBuilder builder(arrive);
      for (auto [value, place] : chosen)
        arrive.getAfterMutable().append(
            isa<VectorType>(value.getType())
                ? vector::ExtractOp::create(builder, arrive.getLoc(), value,
                                            ArrayRef<int64_t>{place})
                      .getResult()
                : value);
      ++numReleases;
    });
  }
};

} // namespace
