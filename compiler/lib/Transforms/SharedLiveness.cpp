//===- SharedLiveness.cpp - which shared tiles are live together ----------===//
//
// A tile is live where its bytes may have been accessed before, where a load
// may still read them, and where a copy into it is in flight:
//
//   1. Backwards: after which ops a load may read what is there. A store of
//      the whole tile reads nothing and ends the need for what was there.
//   2. Forwards: which tiles have been accessed, and which copies are under
//      way. After each op the tiles it uses and the live ones are pairwise
//      apart.
//
// Loops are followed until nothing changes; then a tile that an iteration reads
// and one before has stored is live all through the loop.
//
//===----------------------------------------------------------------------===//
#include "SharedLiveness.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;
using llvm::BitVector;

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// The shared tile that `op` accesses; null for an op that is not known.
static Value getAccessedTile(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<LoadSharedOp, LoadScalarOp>(
          [](auto load) -> Value { return load.getSource(); })
      .Case<LookupOp, LookupPairsOp, AddLookupsOp>(
          [](auto lookup) -> Value { return lookup.getTable(); })
      .Case<StoreSharedOp, CopyAsyncOp>(
          [](auto store) { return store.getDestination(); })
      .Default([](Operation *) { return Value(); });
}

/// Whether `op` lies in nothing but the kernel and regions whose order is
/// known.
static bool isFollowed(Operation *op) {
  Operation *parent = op->getParentOp();
  while (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(parent))
    parent = parent->getParentOp();
  return isa<KernelOp>(parent);
}

SharedTiles::SharedTiles(KernelOp kernel) {
  kernel.walk([&](AllocSharedOp alloc) {
    numbers[alloc.getShared()] = allocs.size();
    allocs.push_back(alloc);
  });
  pinned.resize(allocs.size());
  for (auto [tile, alloc] : llvm::enumerate(allocs))
    for (Operation *user : alloc.getShared().getUsers())
      if (getAccessedTile(user) != alloc.getShared() || !isFollowed(user))
        pinned.set(tile);
}

/// Whether the store leaves nothing of what the tile held before.
static bool storesAll(StoreSharedOp store, AllocSharedOp alloc) {
  if (alloc.getScratch())
    return true;
  return store.getTile().getType().getShape() == alloc.getType().getShape() &&
         llvm::all_of(store.getOffsets(), [](Value offset) {
           return isZeroInteger(OpFoldResult(offset));
         });
}

std::optional<SharedUse> SharedTiles::getUse(Operation *op) const {
  Value accessed = getAccessedTile(op);
  auto number = accessed ? numbers.find(accessed) : numbers.end();
  if (number == numbers.end())
    return std::nullopt;
  SharedUse use{number->second};
  use.reads =
      isa<LoadSharedOp, LoadScalarOp, LookupOp, LookupPairsOp, AddLookupsOp>(
          op);
  use.writes = !use.reads;
  use.isAsync = isa<CopyAsyncOp>(op);
  if (auto store = dyn_cast<StoreSharedOp>(op))
    use.writesAll = storesAll(store, allocs[use.tile]);
  return use;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

BitVector PendingCopies::all() const {
  BitVector both = begun;
  return both |= committed;
}

BitVector PendingCopies::step(Operation *op,
                              const std::optional<SharedUse> &use) {
  BitVector arrived(begun.size());
  if (use && use->isAsync)
    begun.set(use->tile);
  if (isa<CopyAsyncCommitOp>(op)) {
    committed |= begun;
    begun.reset();
  }
  if (auto wait = dyn_cast<CopyAsyncWaitOp>(op); wait && wait.getN() == 0)
    std::swap(arrived, committed);
  return arrived;
}

//===----------------------------------------------------------------------===//
// Liveness
//===----------------------------------------------------------------------===//

namespace {

/// For each op the tiles whose contents a load after it may read.
class Needs {
public:
  Needs(KernelOp kernel, const SharedTiles &tiles) : tiles(tiles) {
    before(kernel.getBody().front(), BitVector(tiles.size()));
  }

  BitVector behind(Operation *op) const { return needed.lookup(op); }

private:
  /// What is needed at the begin of the block, from what is at its end.
  BitVector before(Block &block, BitVector live) {
    for (Operation &op : llvm::reverse(block))
      live = before(&op, std::move(live));
    return live;
  }

  BitVector before(Operation *op, BitVector live) {
    needed[op] = live;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return untilStable(live, [&](const BitVector &next) {
        return before(*loop.getBody(), next);
      });
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return untilStable(BitVector(tiles.size()), [&](const BitVector &next) {
        BitVector either = before(*loop.getAfterBody(), next);
        return before(*loop.getBeforeBody(), either |= live);
      });
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      BitVector other =
          branch.elseBlock() ? before(*branch.elseBlock(), live) : live;
      return other |= before(*branch.thenBlock(), live);
    }
    if (std::optional<SharedUse> use = tiles.getUse(op)) {
      if (use->writesAll)
        live.reset(use->tile);
      if (use->reads)
        live.set(use->tile);
    }
    return live;
  }

  static BitVector
  untilStable(BitVector live,
              llvm::function_ref<BitVector(const BitVector &)> iteration) {
    for (;;) {
      BitVector next = iteration(live);
      next |= live;
      if (next == live)
        return live;
      live = next;
    }
  }

  const SharedTiles &tiles;
  llvm::DenseMap<Operation *, BitVector> needed;
};

/// What has happened on the way to a point.
struct Past {
  BitVector touched;
  PendingCopies copies;

  Past &operator|=(const Past &other) {
    touched |= other.touched;
    copies |= other.copies;
    return *this;
  }
  bool operator==(const Past &other) const {
    return touched == other.touched && copies == other.copies;
  }
};

} // namespace

SmallVector<BitVector> lowlp::findInterference(KernelOp kernel,
                                               const SharedTiles &tiles) {
  SmallVector<BitVector> apart(tiles.size(), BitVector(tiles.size()));
  Needs needs(kernel, tiles);
  auto step = [&](Operation *op, Past &past) {
    std::optional<SharedUse> use = tiles.getUse(op);
    past.copies.step(op, use);
    if (use)
      past.touched.set(use->tile);
    BitVector present = needs.behind(op);
    present &= past.touched;
    present |= past.copies.all();
    if (use)
      present.set(use->tile);
    for (unsigned tile : present.set_bits())
      apart[tile] |= present;
  };
  Past past{BitVector(tiles.size()), PendingCopies(tiles.size())};
  ForwardWalk<Past>(step, nullptr).follow(kernel.getBody().front(), past);
  for (unsigned tile = 0; tile < tiles.size(); ++tile)
    if (tiles.isPinned(tile)) {
      apart[tile].set();
      for (BitVector &others : apart)
        others.set(tile);
    }
  for (unsigned tile = 0; tile < tiles.size(); ++tile)
    apart[tile].reset(tile);
  return apart;
}
