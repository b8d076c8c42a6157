//===- Lowlp.h - the block dialect ------------------------------*- C++ -*-===//
#ifndef LOWLP_IR_LOWLP_H
#define LOWLP_IR_LOWLP_H

#include "lowlp/IR/LowlpPackedAttrs.h"
#include "lowlp/Layout/Layout.h"
#include "lowlp/Layout/SharedLayout.h"
#include "lowlp/Layout/WgmmaTile.h"
#include "lowlp/Numeric/ScalarFormat.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace lowlp {

inline constexpr int64_t kThreadsPerWarpgroup = 128;

// How layouts are hashed as parameters of attributes and types.
inline llvm::hash_code hash_value(const Layout &layout) {
  return llvm::hash_code(layout.hash());
}
inline llvm::hash_code hash_value(const SharedLayout &layout) {
  return llvm::hash_code(layout.hash());
}

} // namespace lowlp

#include "lowlp/IR/LowlpDialect.h.inc"
#include "lowlp/IR/LowlpEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "lowlp/IR/LowlpAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "lowlp/IR/LowlpTypes.h.inc"

namespace lowlp {

/// The operands of `op` that are tiles, in order.
llvm::SmallVector<mlir::OpOperand *> getTileOperands(mlir::Operation *op);

} // namespace lowlp

#include "lowlp/IR/LowlpInterfaces.h.inc"

#define GET_OP_CLASSES
#include "lowlp/IR/LowlpOps.h.inc"

namespace lowlp {

/// What the codes of `type` mean: an integer of 1 to 8 bits with a sign
/// (`si6`, `ui4`), one of MLIR's small floats or `!lowlp.float`. Nothing for
/// every other type.
std::optional<ScalarFormat> getScalarFormat(mlir::Type type);

/// The type of that format. Requires: a format with codes that is not bipolar.
mlir::Type getElementType(mlir::MLIRContext *context,
                          const ScalarFormat &format);

/// True for si16, ui16, si32 and ui32, the integers that have no codes.
bool isWideInteger(mlir::Type type);

/// The bits of one element of a tile, or nothing if tiles of `type` do not
/// exist. They do for the types of `getScalarFormat`, the wide integers, f16,
/// bf16 and f32.
std::optional<unsigned> getElementBits(mlir::Type type);

} // namespace lowlp

#endif // LOWLP_IR_LOWLP_H
