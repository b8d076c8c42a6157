//===- TensorMaps.h - tensor maps among a kernel's parameters -------------===//
#ifndef LOWLP_LIB_CONVERSION_THREADTONVVM_TENSORMAPS_H
#define LOWLP_LIB_CONVERSION_THREADTONVVM_TENSORMAPS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace lowlp {

/// Says of the last `numMaps` arguments of the kernel that they are tensor
/// maps, which lie in the kernel's parameters themselves (PTX ISA,
/// "Tensor-map"; CUDA, `__grid_constant__`).
void markTensorMaps(mlir::LLVM::LLVMFuncOp kernel, size_t numMaps);

/// The arguments with tensor maps whose copies go to places that the kernel
/// loads from shared memory, in order: by the time of the first copy it has
/// waited for memory, and the maps may have come meanwhile.
llvm::SmallVector<unsigned> findLateTensorMaps(mlir::gpu::GPUFuncOp kernel);

/// Has the first thread of a block fetch these maps as the kernel begins (PTX
/// ISA, "prefetch").
void prefetchTensorMaps(mlir::LLVM::LLVMFuncOp kernel,
                        llvm::ArrayRef<unsigned> arguments);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTONVVM_TENSORMAPS_H
