//===- Simt.h - the machine ops of the thread level -------------*- C++ -*-===//
#ifndef LOWLP_IR_SIMT_H
#define LOWLP_IR_SIMT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "lowlp/IR/SimtDialect.h.inc"
#include "lowlp/IR/SimtEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "lowlp/IR/SimtTypes.h.inc"

#define GET_OP_CLASSES
#include "lowlp/IR/SimtOps.h.inc"

namespace lowlp::simt {

/// The most elements that a thread may hold in one value: far above what 255
/// registers hold, of 1 bit an element too, and below where compiling takes
/// minutes.
inline constexpr int64_t kMaxElementsPerThread = 8192;

/// The bytes of a scalar or vector of whole bytes.
int64_t getSizeInBytes(mlir::Type type);

} // namespace lowlp::simt

#endif // LOWLP_IR_SIMT_H
