//===- RingProducer.h - a warp that fills rings -----------------*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_RINGPRODUCER_H
#define LOWLP_LIB_TRANSFORMS_RINGPRODUCER_H

#include "LoopRing.h"

namespace lowlp {

/// A wait for the launch before in front of the loop, or of the loop around it,
/// that could as well stand there; null if there is none. With `acrossReads`
/// memory is read in between, as warps may that wait apart from a producer.
WaitForDependenciesOp findWaitBefore(mlir::scf::ForOp loop,
                                     bool acrossReads = false);

/// Why what the copies need cannot be computed at the begin of the kernel, or
/// the other warps may not come to the loop; empty where a producer can be.
std::string findProducerObstacle(mlir::scf::ForOp loop,
                                 const PipelinedLoads &loads);

/// What is allocated for numbers that the copies need, and that the block keeps
/// in shared memory from before the loop on.
llvm::SetVector<mlir::Operation *> getKeptTiles(mlir::scf::ForOp loop,
                                                const PipelinedLoads &loads);

/// Fills the body of `producer`: it makes all copies of the ring, each when the
/// place is empty. Where the copies need what the block keeps, the first phase
/// of the mbarrier `kept` says that it is there. Requires:
/// `findProducerObstacle` finds none.
void buildProducer(LoopRing &ring, ProducerWarpOp producer, mlir::Value empty,
                   mlir::Value kept);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_RINGPRODUCER_H
