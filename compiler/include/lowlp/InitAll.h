//===- InitAll.h - everything that lowlp registers --------------*- C++ -*-===//
#ifndef LOWLP_INITALL_H
#define LOWLP_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace lowlp {

/// Adds the dialects of lowlp, those of upstream that its passes work on or
/// produce, and the interfaces through which these become LLVM IR.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Makes the passes and pipelines of lowlp, and the general passes of MLIR,
/// known by name to the pass managers of this process. May be called again.
void registerAllPasses();

} // namespace lowlp

#endif // LOWLP_INITALL_H
