//===- SharedLiveness.h - which shared tiles are live together --*- C++ -*-===//
//
// The block level as what it does to shared memory. A tile that is used in a
// way that is not known here is *pinned*: it is live everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_SHAREDLIVENESS_H
#define LOWLP_LIB_TRANSFORMS_SHAREDLIVENESS_H

#include "lowlp/IR/Lowlp.h"

#include "llvm/ADT/BitVector.h"

namespace lowlp {

/// What an op does to a tile.
struct SharedUse {
  unsigned tile;
  bool reads = false, writes = false;
  /// What was there before is gone.
  bool writesAll = false;
  /// The write ends some time before a wait for it does.
  bool isAsync = false;
};

/// The shared tiles of a kernel, by number in the order of the program.
class SharedTiles {
public:
  explicit SharedTiles(KernelOp kernel);

  unsigned size() const { return allocs.size(); }
  AllocSharedOp operator[](unsigned tile) const { return allocs[tile]; }
  /// What `op` does, not what is done in its regions.
  std::optional<SharedUse> getUse(mlir::Operation *op) const;
  bool isPinned(unsigned tile) const { return pinned.test(tile); }

private:
  mlir::SmallVector<AllocSharedOp> allocs;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::BitVector pinned;
};

/// Copies in flight at a point: begun, and committed too. A group is known to
/// have arrived only where all have.
struct PendingCopies {
  llvm::BitVector begun, committed;

  explicit PendingCopies(unsigned numTiles)
      : begun(numTiles), committed(numTiles) {}
  llvm::BitVector all() const;
  /// Follows `op`; returns the tiles whose copies this thread has waited for.
  llvm::BitVector step(mlir::Operation *op,
                       const std::optional<SharedUse> &use);
  PendingCopies &operator|=(const PendingCopies &other) {
    begun |= other.begun;
    committed |= other.committed;
    return *this;
  }
  bool operator==(const PendingCopies &other) const {
    return begun == other.begun && committed == other.committed;
  }
};

/// Follows the program forwards through `scf` loops and branches. `State` has
/// `|=`, which joins the states of two ways to one point, and `==`; `step`
/// follows one op that is none of these. A loop is followed until the state at
/// its entry holds for every iteration; then `visit` is called once for each op
/// of it, if given, before it is followed for the last time.
template <typename State> class ForwardWalk {
public:
  using Step = llvm::function_ref<void(mlir::Operation *, State &)>;
  using Visit = llvm::function_ref<void(mlir::Operation *, State &)>;

  ForwardWalk(Step step, Visit visit) : step(step), visit(visit) {}
  void follow(mlir::Block &block, State &state, bool isLast = true);

private:
  void followOp(mlir::Operation *op, State &state, bool isLast);

  Step step;
  Visit visit;
};

/// For each tile those that it must not overlap.
llvm::SmallVector<llvm::BitVector> findInterference(KernelOp kernel,
                                                    const SharedTiles &tiles);

} // namespace lowlp

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lowlp {

template <typename State>
void ForwardWalk<State>::follow(mlir::Block &block, State &state, bool isLast) {
  // Ops that a visitor puts before `op` are not followed.
  for (mlir::Operation &op : llvm::make_early_inc_range(block))
    followOp(&op, state, isLast);
}

template <typename State>
void ForwardWalk<State>::followOp(mlir::Operation *op, State &state,
                                  bool isLast) {
  using namespace mlir;
  auto iterate = [&](llvm::function_ref<State(State, bool)> iteration) {
    for (;;) {
      State joined = state;
      joined |= iteration(state, /*isLast=*/false);
      if (joined == state)
        break;
      state = joined;
    }
    return iteration(state, isLast);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    iterate([&](State inside, bool last) {
      follow(*loop.getBody(), inside, last);
      return inside;
    });
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    State exit = state;
    iterate([&](State inside, bool last) {
      follow(*loop.getBeforeBody(), inside, last);
      exit = inside;
      follow(*loop.getAfterBody(), inside, last);
      return inside;
    });
    state = exit;
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    State other = state;
    follow(*branch.thenBlock(), state, isLast);
    if (branch.elseBlock())
      follow(*branch.elseBlock(), other, isLast);
    state |= other;
  } else {
    if (isLast && visit)
      visit(op, state);
    step(op, state);
  }
}

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_SHAREDLIVENESS_H
