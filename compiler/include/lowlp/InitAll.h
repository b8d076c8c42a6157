//===- InitAll.h - everything that lowlp registers --------------*- C++ -*-===//
#ifndef LOWLP_INITALL_H
#define LOWLP_INITALL_H

#include <string>

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

/// The pipelines and passes of lowlp, a line with the option's name and the
/// summary for each. Requires: they are registered.
std::string describePasses();

} // namespace lowlp

#endif // LOWLP_INITALL_H
