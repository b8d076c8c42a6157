//===- AccumulatorType.h - what products are added up in --------*- C++ -*-===//
#ifndef LOWLP_LIB_IR_ACCUMULATORTYPE_H
#define LOWLP_LIB_IR_ACCUMULATORTYPE_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// The type of sums of products of `a` and `b`; null where no instruction
/// multiplies them (PTX ISA, "Warp-level matrix instructions: mma").
mlir::Type getAccumulatorType(mlir::Type a, mlir::Type b);

} // namespace lowlp

#endif // LOWLP_LIB_IR_ACCUMULATORTYPE_H
