//===- LowlpIntegerOps.cpp - bits and quotients of integers ---------------===//
#include "lowlp/IR/Lowlp.h"

using namespace mlir;
using namespace lowlp;

static LogicalResult verifyInteger(Operation *op, TileType tile) {
  if (isa<IntegerType>(tile.getElementType()))
    return success();
  return op->emitOpError("works on integers, but the tile holds ")
         << tile.getElementType() << ": cast it first";
}

LogicalResult AndOp::verify() { return verifyInteger(*this, getType()); }
LogicalResult OrOp::verify() { return verifyInteger(*this, getType()); }
LogicalResult XorOp::verify() { return verifyInteger(*this, getType()); }
LogicalResult ShlOp::verify() { return verifyInteger(*this, getType()); }
LogicalResult ShrOp::verify() { return verifyInteger(*this, getType()); }
LogicalResult NotOp::verify() { return verifyInteger(*this, getType()); }

static LogicalResult verifyBitCount(Operation *op, TileType operand,
                                    TileType result) {
  if (failed(verifyInteger(op, operand)))
    return failure();
  TileType expected = operand.cloneWith(
      IntegerType::get(op->getContext(), 32, IntegerType::Signed));
  if (result == expected)
    return success();
  return op->emitOpError("the result must be ")
         << expected << ", but is " << result;
}

LogicalResult PopcountOp::verify() {
  return verifyBitCount(*this, getOperand().getType(), getType());
}

LogicalResult CountLeadingZerosOp::verify() {
  return verifyBitCount(*this, getOperand().getType(), getType());
}

LogicalResult FunnelShiftOp::verify() {
  Type element = getType().getElementType();
  if (isWideInteger(element) && element.getIntOrFloatBitWidth() == 32)
    return success();
  return emitOpError("works on si32 or ui32, but the tile holds ") << element;
}

static LogicalResult verifyQuotient(Operation *op, TileType tile) {
  if (isWideInteger(tile.getElementType()))
    return success();
  return op->emitOpError(
             "divides integers of 16 or 32 bits, but the tile holds ")
         << tile.getElementType() << ": cast it first";
}

LogicalResult FloorDivOp::verify() { return verifyQuotient(*this, getType()); }
LogicalResult ModOp::verify() { return verifyQuotient(*this, getType()); }
