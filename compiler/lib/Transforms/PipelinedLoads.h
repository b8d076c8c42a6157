//===- PipelinedLoads.h - which loads of a loop get stages -----*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_PIPELINEDLOADS_H
#define LOWLP_LIB_TRANSFORMS_PIPELINEDLOADS_H

#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lowlp {

/// A load of a loop's body that can be made ahead of its iteration.
struct StagedLoad {
  LoadGlobalOp load;
  /// The ops of the body that compute its offsets, in order.
  llvm::SmallVector<mlir::Operation *> addressOps;
  /// No launch before writes what it reads.
  bool isConstant = false;
  /// The ring of places, once it is allocated.
  mlir::Value shared;

  /// The bytes of one place.
  int64_t getBytes() const;
  /// The ring's type: places of the load's tile one behind the other, each
  /// where tensor copies may begin, with the swizzle that lets `ldmatrix` read
  /// rows without conflicts where the tile is held as matrices.
  SharedType getRingType(int64_t numStages) const;
};

struct PipelinedLoads {
  llvm::SmallVector<StagedLoad> staged;
  bool byTensorCopies = false;
  /// Why not, where the architecture has them.
  std::string whyNotTensorCopies;

  /// The bytes of one stage.
  int64_t getStageBytes() const;
};

/// The loads of global memory in the body of `loop` whose places depend on the
/// induction variable and on what is known before the loop only, and that read
/// what the kernel does not write.
PipelinedLoads findPipelinedLoads(mlir::scf::ForOp loop, bool hasTensorCopies);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_PIPELINEDLOADS_H
