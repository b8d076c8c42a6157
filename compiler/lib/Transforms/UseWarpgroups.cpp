//===- UseWarpgroups.cpp - lowlp-use-warpgroups ---------------------------===//
//
// The ops of a block are put in order anew. What stands between two products is
// what makes the operand of the second, so with two groups in flight
//
//   decode 1, multiply 1, decode 2, multiply 2, wait for 1, use 1, decode 3 ...
//
// and tensor cores multiply while the next operand is decoded. Ops that use
// accumulators in flight are put off until the wait for them; what cannot be
// put off, and the end of the block, waits for all. An arrival at an mbarrier,
// which says that a stage has been read, is put off after the products that
// read it. Where all loads in front of it are of these, it need not wait for
// any.
//
//===----------------------------------------------------------------------===//
#include "LoopRing.h"
#include "PassRemarks.h"
#include "WarpgroupProducts.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/Report.h"
#include "lowlp/Target/TargetInfo.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-use-warpgroups"

namespace lowlp {
#define GEN_PASS_DEF_USEWARPGROUPS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

static bool isZero(Value tile) {
  auto splat = tile.getDefiningOp<SplatOp>();
  return splat && (matchPattern(splat.getValue(), m_AnyZeroFloat()) ||
                   matchPattern(splat.getValue(), m_Zero()));
}

//===----------------------------------------------------------------------===//
// Loads that have ended
//===----------------------------------------------------------------------===//

/// Whether all that is made of what `load` loads goes to products of its block
/// that come before `wait`. Before such a product begins, the load has ended in
/// all lanes: they make the product together, of registers that it gave or that
/// were made of those.
static bool goesToProducts(LoadSharedOp load, WgmmaWaitOp wait) {
  SetVector<Operation *> users(llvm::from_range, load->getUsers());
  for (size_t i = 0; i < users.size(); ++i) {
    Operation *user = users[i];
    if (user->getBlock() != wait->getBlock() || !user->isBeforeInBlock(wait))
      return false;
    if (isa<WgmmaOp>(user))
      continue;
    if (!onlyReads(user) || user->getNumRegions() != 0 || user->use_empty())
      return false;
    users.insert_range(user->getUsers());
  }
  return true;
}

/// Says of arrivals at mbarriers in `block`, after products that are complete,
/// that no load is in flight, where that is so.
static void markArrivals(Block &block) {
  SmallVector<LoadSharedOp> loads;
  WgmmaWaitOp wait;
  for (Operation &op : block) {
    bool loadsWithin =
        op.getNumRegions() != 0 && op.walk([](LoadSharedOp) {
                                       return WalkResult::interrupt();
                                     }).wasInterrupted();
    if (loadsWithin)
      return;
    if (auto load = dyn_cast<LoadSharedOp>(op))
      loads.push_back(load);
    else if (auto found = dyn_cast<WgmmaWaitOp>(op); found && found.getN() == 0)
      wait = found;
    else if (auto arrival = dyn_cast<MbarrierArriveOp>(op))
      arrival.setLoadsEnded(wait && llvm::all_of(loads, [&](auto load) {
                              return goesToProducts(load, wait);
                            }));
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {

/// Puts the ops of one block in order.
class BlockScheduler {
public:
  BlockScheduler(Block &block, const SetVector<Operation *> &products,
                 int64_t mostInFlight)
      : block(block), products(products), builder(block.getTerminator()),
        mostInFlight(mostInFlight) {}

  void run() {
    hoistLoads();
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (Operation *op : ops)
      if (isProduct(op))
        begin(cast<DotOp>(op));
      else
        place(op);
    waitForAll();
  }

private:
  struct Pending {
    DotOp dot;
    /// Null where a product that follows takes the accumulators.
    Value accumulators;
  };

  bool isProduct(Operation *op) const { return products.contains(op); }

  /// Loads of shared memory go before the product in front of them, so that
  /// they arrive while it is begun, or before two (docs/adr/0112).
  void hoistLoads() {
    bool hasRowsInTurn = findRowsInTurn();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto load = dyn_cast<LoadSharedOp>(op);
      if (!load)
        continue;
      DotOp product = hoist(load);
      if (product && !hasRowsInTurn && goesBeforeTwo(load, product))
        hoist(load);
    }
  }

  /// Moves an op before the product in front of it, together with the numbers
  /// that it needs, if all else that lies between can stand after it. Returns
  /// the product; null where the op stays.
  DotOp hoist(Operation *op) {
    SmallVector<Operation *> moved = {op};
    for (Operation *at = op->getPrevNode(); at; at = at->getPrevNode()) {
      bool isNeeded = llvm::any_of(at->getUsers(), [&](Operation *user) {
        return llvm::is_contained(moved, user);
      });
      if (isNeeded && !isNumber(*at))
        return {};
      if (isNeeded) {
        moved.push_back(at);
      } else if (isProduct(at)) {
        for (Operation *other : llvm::reverse(moved))
          other->moveBefore(at);
        return cast<DotOp>(at);
      } else if (!onlyReads(at)) {
        return {};
      }
    }
    return {};
  }

  /// Whether a load goes before a second product. By measurement that gains
  /// with few columns, and with halves whatever the columns, as long as few
  /// registers are held longer (docs/adr/0112).
  static bool goesBeforeTwo(LoadSharedOp load, DotOp product) {
    constexpr int64_t kMostColumns = 64, kMostBits = 128;
    TileType tile = load.getType();
    int64_t bits =
        tile.getLayout().numLocals() * *getElementBits(tile.getElementType());
    TileType fragments = product.getA().getType();
    bool isShort = product.getType().getShape()[1] <= kMostColumns ||
                   *getElementBits(fragments.getElementType()) == 16;
    return isShort && bits <= kMostBits && llvm::isPowerOf2_64(bits);
  }

  /// Whether products of several tiles of rows follow each other, which read
  /// the same part of x: two of them are one step along K, and the words of two
  /// steps would not fit the registers.
  bool findRowsInTurn() const {
    DotOp last;
    for (DotOp dot : block.getOps<DotOp>()) {
      if (!isProduct(dot))
        continue;
      if (last && dot.getB() == last.getB() && dot.getA() != last.getA())
        return true;
      last = dot;
    }
    return false;
  }

  static bool isNumber(Operation &op) {
    return op.getNumResults() == 1 && op.getResult(0).getType().isIndex() &&
           op.getNumRegions() == 0 && isMemoryEffectFree(&op);
  }

  bool isBlocked(Operation *op) const {
    bool blocked = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        blocked |= blockedValues.contains(operand);
    });
    return blocked;
  }

  void place(Operation *op) {
    if (isa<MbarrierArriveOp>(op) && !pending.empty()) {
      arrivals.push_back(op);
      return;
    }
    if (isBlocked(op)) {
      if (isMemoryEffectFree(op) && op->getNumRegions() == 0) {
        deferred.push_back(op);
        blockedValues.insert(op->result_begin(), op->result_end());
        return;
      }
      waitForAll();
    } else if (!onlyReads(op)) {
      // Others may not stand among products in flight.
      waitForAll();
    }
    op->moveBefore(block.getTerminator());
  }

  /// Whether all that uses the accumulators of a product is one that adds to
  /// them.
  bool isPassedOn(DotOp dot) const {
    if (!dot.getResult().hasOneUse())
      return false;
    OpOperand &use = *dot.getResult().use_begin();
    return isProduct(use.getOwner()) &&
           use.getOwner()->getBlock() == dot->getBlock() &&
           cast<DotOp>(use.getOwner()).getC() == use.get();
  }

  void begin(DotOp dot) {
    Value addend = passedOn.lookup(dot.getC());
    if (blockedValues.contains(dot.getA()) ||
        blockedValues.contains(dot.getC()))
      waitForAll();
    if (!addend && !isZero(dot.getC()))
      addend = dot.getC();
    LoadSharedOp load = getLoadOfB(dot);
    auto type =
        AccumulatorsType::get(dot.getContext(), dot.getType().getElementType(),
                              dot.getType().getLayout());
    Value accumulators =
        WgmmaOp::create(builder, dot.getLoc(), type, dot.getA(),
                        load.getSource(), load.getOffsets(), addend);
    WgmmaCommitOp::create(builder, dot.getLoc());
    if (isPassedOn(dot)) {
      passedOn[dot.getResult()] = accumulators;
      accumulators = {};
    } else {
      blockedValues.insert(dot.getResult());
    }
    pending.push_back({dot, accumulators});
    if (static_cast<int64_t>(pending.size()) >= mostInFlight)
      waitForAllBut(mostInFlight - 1);
  }

  void waitForAll() {
    if (!pending.empty())
      waitForAllBut(0);
  }

  /// Waits until at most `rest` products are in flight, and places what that
  /// allows.
  void waitForAllBut(int64_t rest) {
    auto count = static_cast<int64_t>(pending.size()) - rest;
    SmallVector<Value> taken;
    SmallVector<DotOp> complete;
    for (const Pending &product : ArrayRef(pending).take_front(count)) {
      if (!product.accumulators)
        continue;
      taken.push_back(product.accumulators);
      complete.push_back(product.dot);
    }
    auto types = llvm::map_to_vector(
        complete, [](DotOp dot) -> Type { return dot.getType(); });
    auto wait = WgmmaWaitOp::create(builder, pending.back().dot.getLoc(), types,
                                    rest, taken);
    for (auto [dot, tile] : llvm::zip_equal(complete, wait.getTiles())) {
      blockedValues.erase(dot.getResult());
      dot.getResult().replaceAllUsesWith(tile);
    }
    pending.erase(pending.begin(), pending.begin() + count);
    placeDeferred();
    if (!pending.empty())
      return;
    for (Operation *arrival : arrivals)
      arrival->moveBefore(block.getTerminator());
    arrivals.clear();
  }

  /// Places what was put off and need not be any more, in its order.
  void placeDeferred() {
    SmallVector<Operation *> still;
    for (Operation *op : deferred) {
      for (Value result : op->getResults())
        blockedValues.erase(result);
      if (isBlocked(op)) {
        blockedValues.insert(op->result_begin(), op->result_end());
        still.push_back(op);
        continue;
      }
      op->moveBefore(block.getTerminator());
    }
    deferred = std::move(still);
  }

  Block &block;
  const SetVector<Operation *> &products;
  OpBuilder builder;
  int64_t mostInFlight;
  /// In the order in which they were begun, each a group of its own.
  SmallVector<Pending> pending;
  /// Accumulators in flight, and what is made of them.
  DenseSet<Value> blockedValues;
  /// Results of products of which another product takes the accumulators.
  DenseMap<Value, Value> passedOn;
  SmallVector<Operation *> deferred;
  SmallVector<Operation *> arrivals;
};

struct UseWarpgroups : lowlp::impl::UseWarpgroupsBase<UseWarpgroups> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    const TargetInfo *target = TargetInfo::lookupFor(kernel, arch);
    if (!target)
      return signalPassFailure();
    // What has warpgroups has instructions that move registers between them.
    bool hasWarpgroups = target->getSupport(Feature::Wgmma).isNative();
    ScheduleAttr schedule = kernel.getScheduleOrDefault();
    if (!hasWarpgroups)
      kernel.changeSchedule(schedule.withoutExchangeOfRegisters());
    if (schedule.getMatrixUnit() != MatrixUnit::Warpgroup)
      return;
    if (!hasWarpgroups)
      return decline(kernel, arch + " has no products by warpgroups");
    int64_t mostInFlight = schedule.getProductsInFlight();
    int64_t numDots = 0;
    SetVector<Operation *> products;
    SetVector<Block *> blocks;
    kernel.walk([&](DotOp dot) {
      ++numDots;
      std::string obstacle = findObstacle(dot);
      if (obstacle.empty() && !orderStores(dot))
        obstacle = "threads store operand b, and no barrier of the product's "
                   "block stands between";
      if (!obstacle.empty())
        return decline(dot, obstacle);
      products.insert(dot);
      blocks.insert(dot->getBlock());
    });
    for (Block *block : blocks) {
      BlockScheduler(*block, products, mostInFlight).run();
      if (schedule.getPingPong() && !takeTurns(*block))
        remarkDeclined(block->getParentOp(), DEBUG_TYPE, "ping-pong", [] {
          return "warpgroups take turns in loops of the kernel's own body and "
                 "in loops of these, and where there are two or more";
        });
    }
    // Registers are exchanged by warpgroups.
    if (products.empty())
      kernel.changeSchedule(schedule.withoutExchangeOfRegisters());
    numProducts += products.size();
    eraseUnused(products.getArrayRef());
    for (Block *block : blocks)
      markArrivals(*block);
    std::string note = std::to_string(products.size()) + " of " +
                       std::to_string(numDots) +
                       " products by warpgroups, at most " +
                       std::to_string(mostInFlight) + " in flight";
    setReport(kernel, "warpgroups", note);
  }

private:
  static void decline(Operation *op, const std::string &reason) {
    LDBG() << op->getName() << " stays as it is: " << reason;
    remarkDeclined(op, DEBUG_TYPE, "warpgroups", [&] { return reason; });
  }

  /// Lets the warpgroups begin the products of an iteration one after the
  /// other. The products of one then run beside what another does for its next,
  /// rather than that all decode at once and multiply at once.
  /// Fails where there is no such loop or only one warpgroup.
  static bool takeTurns(Block &block) {
    auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
    auto kernel = block.getParentOp()->getParentOfType<KernelOp>();
    if (!loop || kernel.getNumThreads() < 2 * kThreadsPerWarpgroup)
      return false;
    // Once for all iterations, those of a loop around it too.
    scf::ForOp outermost = getOutermost(loop);
    if (outermost->getParentOp() != kernel)
      return false;
    Location loc = loop.getLoc();
    OpBuilder builder(outermost);
    GiveTurnOp::create(builder, loc, /*first=*/true);
    auto products = block.getOps<WgmmaOp>();
    builder.setInsertionPoint(*products.begin());
    TakeTurnOp::create(builder, loc);
    Operation *last = nullptr;
    for (auto commit : block.getOps<WgmmaCommitOp>())
      last = commit;
    builder.setInsertionPointAfter(last);
    GiveTurnOp::create(builder, loc, /*first=*/false);
    return true;
  }

  /// Products that became others, which stand in front of what made their
  /// operands, and what made operand b of these alone.
  void eraseUnused(ArrayRef<Operation *> products) {
    for (Operation *dot : llvm::reverse(products))
      dot->erase();
    SmallVector<Operation *> candidates;
    getOperation().walk([&](Operation *op) {
      if (isa<LoadSharedOp, TransposeOp, ViewOp>(op))
        candidates.push_back(op);
    });
    for (Operation *op : llvm::reverse(candidates))
      if (op->use_empty())
        op->erase();
  }
};
} // namespace
