//===- SameInCluster.cpp - what the blocks of a cluster agree on ----------===//
#include "lowlp/Analysis/SameInCluster.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowlp;

/// The value that integer casts made another type of; each keeps the low bits.
static Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::TruncIOp,
             arith::ExtUIOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether `value` is a constant multiple of `factor`, and not 0.
static bool isMultiple(Value value, int64_t factor) {
  APInt number;
  return matchPattern(skipCasts(value), m_ConstantInt(&number)) &&
         number.isStrictlyPositive() && number.getSExtValue() % factor == 0;
}

/// Whether `value` is the number of the block, or its rest by a multiple of
/// `blocks`, of which division by `blocks` leaves the same in a cluster.
static bool isNumberOfBlock(Value value, int64_t blocks) {
  Operation *op = skipCasts(value).getDefiningOp();
  if (isa_and_nonnull<arith::RemUIOp, arith::RemSIOp>(op))
    return isMultiple(op->getOperand(1), blocks) &&
           isNumberOfBlock(op->getOperand(0), blocks);
  return isa_and_nonnull<BlockIndicesOp>(op);
}

bool SameInCluster::isNumberOfCluster(Operation *op) const {
  return isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(op) &&
         isMultiple(op->getOperand(1), blocks) &&
         isNumberOfBlock(op->getOperand(0), blocks);
}

bool SameInCluster::findsOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (isa<KernelOp>(owner))
      return true;
    auto loop = dyn_cast<scf::ForOp>(owner);
    return loop && argument == loop.getInductionVar() &&
           has(loop.getLowerBound()) && has(loop.getUpperBound()) &&
           has(loop.getStep());
  }
  Operation *op = value.getDefiningOp();
  if (isNumberOfCluster(op))
    return true;
  return !isa<BlockIndicesOp>(op) && isMemoryEffectFree(op) &&
         op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [this](Value v) { return has(v); });
}

bool SameInCluster::has(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  bool same = findsOf(value);
  known[value] = same;
  return same;
}
