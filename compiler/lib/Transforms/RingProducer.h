//===- RingProducer.h - a warp that fills rings -----------------*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_RINGPRODUCER_H
#define LOWLP_LIB_TRANSFORMS_RINGPRODUCER_H

#include "LoopRing.h"

namespace lowlp {

/// A wait for the launch before in front of the loop, or of the loop around it,
/// that could as well stand there; null if there is none.
WaitForDependenciesOp findWaitBefore(mlir::scf::ForOp loop);

/// Why what the copies need cannot be computed at the begin of the kernel, or
/// the other warps may not come to the loop; empty where a producer can be.
std::string findProducerObstacle(mlir::scf::ForOp loop,
                                 const PipelinedLoads &loads);

/// Fills the body of `producer`: it makes all copies of the ring, each when the
/// place is empty. Requires: `findProducerObstacle` finds none.
void buildProducer(LoopRing &ring, ProducerWarpOp producer, mlir::Value empty);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_RINGPRODUCER_H
