//===- ThreadToLLVM.h - what both machine lowerings share -------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTOLLVM_THREADTOLLVM_H
#define LOWLP_LIB_CONVERSION_THREADTOLLVM_THREADTOLLVM_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class LLVMTypeConverter;
class Location;
class OpBuilder;
class Value;
class RewritePatternSet;
class LowerToLLVMOptions;
class MLIRContext;
} // namespace mlir

namespace lowlp {

/// The options of the type converters of both lowerings: an index has 64 bits.
mlir::LowerToLLVMOptions getLoweringOptions(mlir::MLIRContext *context);

/// Fails with a diagnostic at an op below `root` that gives a thread more
/// elements in one vector than compiling can bear.
mlir::LogicalResult verifyVectorSizes(mlir::Operation *root);

/// Turns the `scf` ops below `root` into blocks and branches. Fails with a
/// diagnostic at an op of `scf` that has no such form.
mlir::LogicalResult lowerStructuredControlFlow(mlir::Operation *root);

/// Upstream lowers functions to calls of a library of device code, with the
/// benefit 1. The lowerings to LLVM's intrinsics come before those, and the
/// lowerings to instructions of a machine before these.
inline constexpr unsigned kIntrinsicBenefit = 2;
inline constexpr unsigned kInstructionBenefit = 3;

/// Adds the lowerings of `arith`, `cf`, `math`, `vector` and `ub`, which do not
/// depend on the machine.
void populateThreadToLLVMPatterns(const mlir::LLVMTypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);

/// The address `offset` bytes past `base`.
mlir::Value getByteAddress(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value base, mlir::Value offset);

/// Succeeds if a value of `type`, a scalar or a vector, lies in memory as in a
/// register, that is if it is not a vector of several dimensions. Otherwise
/// fails with a diagnostic at `op`.
mlir::LogicalResult verifyFlat(mlir::Operation *op, mlir::Type type);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTOLLVM_THREADTOLLVM_H
