include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.td"
