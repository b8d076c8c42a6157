include "mlir/Dialect/Arith/IR/ArithOps.td"
