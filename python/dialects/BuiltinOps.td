include "mlir/IR/BuiltinOps.td"
