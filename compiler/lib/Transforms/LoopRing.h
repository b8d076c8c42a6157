//===- LoopRing.h - the places of a loop, and copies into them --*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_LOOPRING_H
#define LOWLP_LIB_TRANSFORMS_LOOPRING_H

#include "PipelinedLoads.h"

#include "mlir/IR/IRMapping.h"

namespace lowlp {

/// A place of the ring, and the parity of the round in which it is used.
struct RingPlace {
  mlir::Value place, parity;
};

/// The loop of the kernel's body that has `loop` in its own; null where `loop`
/// stands in the kernel's body itself.
mlir::scf::ForOp getLoopAround(mlir::scf::ForOp loop);

/// `loop`, or the loop around it.
mlir::scf::ForOp getOutermost(mlir::scf::ForOp loop);

/// Whether an op does no more to memory than read it.
bool onlyReads(mlir::Operation *op);

/// Whether a loop with rings may stand where it does: in the body of the kernel
/// itself, or of a loop there.
bool hasPlaceForRings(mlir::scf::ForOp loop);

/// A loop whose iterations read the places of a ring by turns, and what begins
/// the copies of one into a place.
struct LoopRing {
  using IsMeant = llvm::function_ref<bool(const StagedLoad &)>;

  LoopRing(mlir::scf::ForOp loop, int64_t numStages, PipelinedLoads loads)
      : loop(loop), loc(loop.getLoc()), numStages(numStages),
        loads(std::move(loads)) {}

  mlir::Value buildIndex(mlir::OpBuilder &builder, int64_t value) const;
  /// The value of the induction variable `steps` iterations after `from`.
  mlir::Value getIteration(mlir::OpBuilder &builder, mlir::Value from,
                           mlir::Value steps) const;
  mlir::Value isInLoop(mlir::OpBuilder &builder, mlir::Value number) const;
  /// The place of the iteration after; both index or both i32.
  RingPlace getNext(mlir::OpBuilder &builder, RingPlace place) const;
  /// Calls `body` in a loop over the first `count` iterations that there are.
  void forFirst(mlir::OpBuilder &builder, mlir::Value begin, int64_t count,
                llvm::function_ref<void(mlir::Value, mlir::Value)> body) const;
  /// Begins the copies of iteration `number` to a place.
  void copyAll(mlir::OpBuilder &builder, mlir::Value number, mlir::Value place,
               IsMeant isMeant) const;
  /// Computes what the copies of iteration `number` need.
  mlir::IRMapping mapAddresses(
      mlir::OpBuilder &builder, mlir::Value number,
      IsMeant isMeant = [](const StagedLoad &) { return true; }) const;
  void copy(mlir::OpBuilder &builder, const StagedLoad &staged,
            mlir::Value place, const mlir::IRMapping &mapping) const;
  /// Says of `op` that the blocks of a cluster copy for each other.
  void markMulticast(mlir::Operation *op) const;
  /// Where what lies at `position`, along its last dimensions, of a place
  /// begins in the ring.
  llvm::SmallVector<mlir::Value>
  getOffsets(mlir::OpBuilder &builder, const StagedLoad &load,
             mlir::Value place, llvm::ArrayRef<int64_t> position) const;

  mlir::scf::ForOp loop;
  mlir::Location loc;
  int64_t numStages;
  PipelinedLoads loads;
  /// How many iterations there are, up to `numStages`.
  mlir::Value countFirst(mlir::OpBuilder &builder) const;
  /// In a producer: what was computed before the loop.
  mlir::IRMapping before;
  /// The mbarriers that tensor copies complete.
  mlir::Value full;
};

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_LOOPRING_H
