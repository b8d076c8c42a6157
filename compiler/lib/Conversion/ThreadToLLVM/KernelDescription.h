//===- KernelDescription.h - what a launch needs to know --------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTOLLVM_KERNELDESCRIPTION_H
#define LOWLP_LIB_CONVERSION_THREADTOLLVM_KERNELDESCRIPTION_H

#include "mlir/IR/BuiltinOps.h"

namespace lowlp {

/// The attribute of a module that describes its kernels.
inline constexpr llvm::StringLiteral kKernelsAttrName = "lowlp.kernels";

/// Describes every kernel of `module` in its attribute `lowlp.kernels`: a
/// dictionary from the kernel's name to
///
///   block_size   array<i32: x, y, z>
///   x            the attribute `lowlp.x` of the kernel, for every x
///
/// such as `grid` and `parameters`. The attributes `lowlp.*` leave the kernels.
/// Fails with a diagnostic if a kernel has no known block size, declares
/// attributions, or shares its name with one of another gpu.module.
mlir::LogicalResult describeKernels(mlir::ModuleOp module);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTOLLVM_KERNELDESCRIPTION_H
