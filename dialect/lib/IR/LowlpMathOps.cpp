//===- LowlpMathOps.cpp - functions, comparisons, choices -----------------===//
#include "ComputeType.h"

#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

LogicalResult MinimumOp::verify() {
  return verifyArithmeticType(*this, getType());
}
LogicalResult MaximumOp::verify() {
  return verifyArithmeticType(*this, getType());
}
LogicalResult AbsOp::verify() {
  return verifySignedArithmeticType(*this, getType());
}
LogicalResult ExpOp::verify() { return verifyComputeType(*this, getType()); }
LogicalResult Exp2Op::verify() { return verifyComputeType(*this, getType()); }
LogicalResult Log2Op::verify() { return verifyComputeType(*this, getType()); }
LogicalResult SqrtOp::verify() { return verifyComputeType(*this, getType()); }
LogicalResult RsqrtOp::verify() { return verifyComputeType(*this, getType()); }
LogicalResult TanhOp::verify() { return verifyComputeType(*this, getType()); }

/// A condition is held as the tile that it is about, in codes of one bit.
static LogicalResult verifyCondition(Operation *op, TileType condition,
                                     TileType tile) {
  TileType expected = tile.cloneWith(IntegerType::get(
      op->getContext(), 1, IntegerType::SignednessSemantics::Unsigned));
  if (condition == expected)
    return success();
  return op->emitOpError("the condition must be ")
         << expected << ", but is " << condition;
}

LogicalResult CompareOp::verify() {
  if (failed(verifyArithmeticType(*this, getLhs().getType())))
    return failure();
  return verifyCondition(*this, getType(), getLhs().getType());
}

LogicalResult SelectOp::verify() {
  return verifyCondition(*this, getCondition().getType(), getType());
}
