//===- Divisions.cpp - divisions that a CPU would trap at -----------------===//
//
// A GPU gives some number where a divisor is 0, and wraps where the smallest
// number is divided by -1; a CPU ends the process. Here the first is reported,
// with the op and its place, and for both a divisor of 1 takes its place, which
// in the second case gives what wraps: the quotient is the number again and the
// rest 0.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "lowlp/Analysis/SourceOp.h"
#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowlp;

static bool isSignedDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp>(op);
}

/// Whether `op` divides numbers, and the divisor may be one that traps.
static bool mayTrap(Operation *op) {
  bool isSigned = isSignedDivision(op);
  if (!isSigned && !isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op))
    return false;
  Value divisor = op->getOperand(1);
  if (!divisor.getType().isSignlessIntOrIndex())
    return false;
  APInt number;
  return !matchPattern(divisor, m_ConstantInt(&number)) || number.isZero() ||
         (isSigned && number.isAllOnes());
}

static void guard(Operation *op) {
  Location loc = NameLoc::get(
      StringAttr::get(op->getContext(), getSourceOpName(op)), op->getLoc());
  OpBuilder builder(op);
  Value divisor = op->getOperand(1);
  Type type = divisor.getType();
  unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                  : type.getIntOrFloatBitWidth();
  auto equals = [&](Value value, const APInt &number) -> Value {
    Value other = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(type, number));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value,
                                 other);
  };
  Value traps = equals(divisor, APInt(width, 0));
  Value isFalse =
      arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  Value holds = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                      traps, isFalse);
  simt::AssertOp::create(builder, loc, holds, "division by zero");
  if (isSignedDivision(op)) {
    Value isLeast = equals(op->getOperand(0), APInt::getSignedMinValue(width));
    Value isMinusOne = equals(divisor, APInt::getAllOnes(width));
    Value wraps = arith::AndIOp::create(builder, loc, isLeast, isMinusOne);
    traps = arith::OrIOp::create(builder, loc, traps, wraps);
  }
  Value one = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(type, APInt(width, 1)));
  op->setOperand(1, arith::SelectOp::create(builder, loc, traps, one, divisor));
}

void lowlp::guardDivisions(Operation *kernel) {
  SmallVector<Operation *> divisions;
  kernel->walk([&](Operation *op) {
    if (mayTrap(op))
      divisions.push_back(op);
  });
  for (Operation *division : divisions)
    guard(division);
}
