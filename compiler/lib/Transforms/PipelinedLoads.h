//===- PipelinedLoads.h - which loads of a loop get stages -----*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_PIPELINEDLOADS_H
#define LOWLP_LIB_TRANSFORMS_PIPELINEDLOADS_H

#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/Result.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lowlp {

/// A load of a loop's body that can be made ahead of its iteration, with those
/// that read neighbouring parts of the same view.
struct StagedLoad {
  /// A load of a part of what is copied, which begins at `position`.
  struct Part {
    LoadGlobalOp load;
    llvm::SmallVector<int64_t> position;
  };

  /// The one where the copy begins.
  LoadGlobalOp load;
  /// The ops of the body that compute its offsets, in order.
  llvm::SmallVector<mlir::Operation *> addressOps;
  /// No launch before writes what it reads.
  bool isConstant = false;
  /// Each block of the cluster copies a part of it for all of them.
  bool isMulticast = false;
  /// What is copied, along the last dimensions of the view, and the loads that
  /// read it.
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<Part> parts;
  /// The ring of places: its type once it is chosen, and then its value.
  SharedType ringType;
  mlir::Value shared;

  /// The bytes of one place.
  int64_t getBytes() const;
  /// The ring's type: places of what is copied one after the other, each
  /// where tensor copies may begin, with the swizzle that lets `ldmatrix` read
  /// rows without conflicts where the tile is held as matrices.
  SharedType getRingType(int64_t numStages) const;
};

struct PipelinedLoads {
  llvm::SmallVector<StagedLoad> staged;
  bool byTensorCopies = false;
  /// Why not, where the architecture has them.
  std::string whyNotTensorCopies;
  /// Of the clusters among which copies are multicast; 1 where none is.
  int64_t numBlocks = 1;
  /// Loads of the loop that cannot be made ahead, and why.
  llvm::SmallVector<std::pair<LoadGlobalOp, std::string>> left;

  /// The bytes of one stage.
  int64_t getStageBytes() const;
};

/// A load of the body of `loop` as one that can be made ahead of its iteration,
/// or why it cannot.
Result<StagedLoad> getStagedLoad(LoadGlobalOp load, mlir::scf::ForOp loop);

/// How far after `first` the tile of `second` begins along each dimension of
/// the view they share; nothing where that is not known.
std::optional<llvm::SmallVector<int64_t>> getDistance(LoadGlobalOp first,
                                                      LoadGlobalOp second);

/// Why a tensor copy cannot make the load; empty if it can. The demands are
/// those of `lowlp.copy_tensor`.
std::string findObstacle(LoadGlobalOp load);

/// Why the blocks of clusters of `numBlocks` cannot make the copies of a loop's
/// ring for each other; empty if they can: all of them make the same copy in
/// the same iteration, and it divides into parts.
std::string findMulticastObstacle(const StagedLoad &staged,
                                  mlir::scf::ForOp loop, int64_t numBlocks);

/// The loads of global memory in the body of `loop` whose places depend on the
/// induction variable and on what is known before the loop only, and that read
/// what the kernel does not write. Neighbours are one.
PipelinedLoads findPipelinedLoads(mlir::scf::ForOp loop, bool hasTensorCopies);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_PIPELINEDLOADS_H
