include "mlir/Dialect/GPU/IR/GPUOps.td"
