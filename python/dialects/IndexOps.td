include "mlir/Dialect/Index/IR/IndexOps.td"
