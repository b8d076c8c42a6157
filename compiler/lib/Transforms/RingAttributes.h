//===- RingAttributes.h - the choice of rings in the IR ---------*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_RINGATTRIBUTES_H
#define LOWLP_LIB_TRANSFORMS_RINGATTRIBUTES_H

#include "PipelinedLoads.h"

#include "lowlp/IR/LowlpRings.h"

namespace lowlp {

/// Writes what was chosen for a loop: `lowlp.rings`, and `lowlp.ring` of each
/// load.
void writeRings(mlir::scf::ForOp loop, const PipelinedLoads &loads,
                int64_t numStages, RingCopies copies);

/// Reads it, and takes the attributes off. Fails with a diagnostic where loads
/// and rings do not fit each other, or copies cannot be made so.
mlir::FailureOr<PipelinedLoads>
takeRings(mlir::scf::ForOp loop, RingsAttr rings, bool hasTensorCopies);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_RINGATTRIBUTES_H
