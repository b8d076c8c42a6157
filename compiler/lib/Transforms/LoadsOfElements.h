//===- LoadsOfElements.h - which loads elements depend on -------*- C++ -*-===//
//
// Element by element, since a vector is a register for each: the accumulators
// of a thread are one value, and each of them depends on other loads. A result
// of whose operation nothing is known depends on no load here, so what is found
// is never too much.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_LOADSOFELEMENTS_H
#define LOWLP_LIB_TRANSFORMS_LOADSOFELEMENTS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace lowlp {

class LoadsOfElements {
public:
  /// Counts the results of `op` as loaded by load `number`.
  void addLoad(mlir::Operation *op, unsigned number);

  /// Follows the loads from the operands of `op` to its results. Ops are to be
  /// visited in their order.
  void visit(mlir::Operation *op);

  /// The same from what the regions of `branch` yield, which were visited.
  /// Region i has the loads from `begins[i]` to `begins[i + 1]`: what it yields
  /// is there after those of them that were made, and after others if all
  /// regions say so.
  void visitBranch(mlir::Operation *branch, llvm::ArrayRef<unsigned> begins);

  /// The loads that an element of `value`, a scalar or a vector of one
  /// dimension, cannot be there before.
  llvm::BitVector get(mlir::Value value, int64_t element) const;

  /// How many elements are told apart: those of a vector of one dimension
  /// and of accumulators, 1 of a scalar, 0 of any other type.
  static int64_t countElements(mlir::Type type);

private:
  using Elements = llvm::SmallVector<llvm::BitVector>;

  llvm::BitVector getAll(mlir::ValueRange values) const;
  void set(mlir::Value value, llvm::function_ref<llvm::BitVector(int64_t)> of);

  llvm::DenseMap<mlir::Value, Elements> loads;
};

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_LOADSOFELEMENTS_H
