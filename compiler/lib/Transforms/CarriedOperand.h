//===- CarriedOperand.h - an operand made one iteration ahead ---*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_CARRIEDOPERAND_H
#define LOWLP_LIB_TRANSFORMS_CARRIEDOPERAND_H

#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lowlp {

/// Lets a loop carry operand a of its first product: an iteration makes that of
/// the next one behind its last product, and the first is made before the loop.
///
/// That can be done where the operand is made of what lies in a place of a ring
/// that the loop carries, and of what is known before the loop. The wait for
/// the place, the only one in the body for an mbarrier, goes along. The result
/// is whether it could.
bool carryFirstOperand(mlir::scf::ForOp loop, DotOp first, DotOp last);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_CARRIEDOPERAND_H
