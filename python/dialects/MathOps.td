include "mlir/Dialect/Math/IR/MathOps.td"
