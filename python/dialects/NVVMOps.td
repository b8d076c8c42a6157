include "mlir/Dialect/LLVMIR/NVVMOps.td"
