include "mlir/Dialect/Vector/IR/VectorOps.td"
