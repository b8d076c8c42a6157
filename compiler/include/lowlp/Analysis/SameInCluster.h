//===- SameInCluster.h - what the blocks of a cluster agree on -*- C++ -*-===//
//
// Blocks c i to c i + c - 1 of a grid of one extent are a cluster of c blocks.
// They agree on what follows from constants, parameters, and the number of the
// block divided by c:
//
//   %pair = arith.divui %block, %c2       the same in a cluster of two
//   %row  = arith.muli %pair, %c128       so is this
//   %own  = arith.remui %block, %c2       not the same
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_ANALYSIS_SAMEINCLUSTER_H
#define LOWLP_ANALYSIS_SAMEINCLUSTER_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// Which values are the same in all blocks of a cluster for certain. What loops
/// carry and what is read from memory is not.
class SameInCluster {
public:
  /// Requires: blocks are a cluster of `blocks` along a grid of one extent.
  explicit SameInCluster(int64_t blocks) : blocks(blocks) {}

  bool has(mlir::Value value);

private:
  bool findsOf(mlir::Value value);
  bool isNumberOfCluster(mlir::Operation *op) const;

  int64_t blocks;
  llvm::DenseMap<mlir::Value, bool> known;
};

} // namespace lowlp

#endif // LOWLP_ANALYSIS_SAMEINCLUSTER_H
