include "mlir/Dialect/SCF/IR/SCFOps.td"
