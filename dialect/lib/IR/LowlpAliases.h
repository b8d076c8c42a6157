//===- LowlpAliases.h - short names for long types --------------*- C++ -*-===//
#ifndef LOWLP_LIB_IR_LOWLPALIASES_H
#define LOWLP_LIB_IR_LOWLPALIASES_H

namespace mlir {
class Dialect;
} // namespace mlir

namespace lowlp {

/// Lets MLIR print tiles, layouts and plans once, and name them where they are
/// used: `!tile_16x64xf16` by shape and element type, `#layout`, `#plan`.
void addAliases(mlir::Dialect &dialect);

} // namespace lowlp

#endif // LOWLP_LIB_IR_LOWLPALIASES_H
