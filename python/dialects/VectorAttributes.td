include "mlir/Dialect/Vector/IR/VectorAttributes.td"
