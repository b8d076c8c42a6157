include "mlir/Dialect/Func/IR/FuncOps.td"
