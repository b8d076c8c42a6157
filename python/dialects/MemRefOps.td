include "mlir/Dialect/MemRef/IR/MemRefOps.td"
