//===- SourceOp.h - the block op behind an op -------------------*- C++ -*-===//
//
// Passes wrap the place of a block op in a NameLoc that holds the op's name; a
// front end may have wrapped the place in the calls that led to it, of which
// the innermost is where the op was written:
//
//   NameLoc("lowlp.dot", CallSiteLoc(callee "k.py":7:3, caller "main.py":2:1))
//     ->  "lowlp.dot" and "k.py":7:3
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_ANALYSIS_SOURCEOP_H
#define LOWLP_ANALYSIS_SOURCEOP_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

namespace lowlp {

/// The name of the block op that `op` was made from, or its own if its location
/// holds none.
llvm::StringRef getSourceOpName(mlir::Operation *op);

/// The place where something was written that has the location `loc`, or null.
mlir::FileLineColRange findSourcePlace(mlir::LocationAttr loc);

/// An error of a program as a whole, such as an option that does not suit it:
/// at its first op, since the module of a file has no line, and without the
/// program's text.
mlir::InFlightDiagnostic emitErrorAtProgram(mlir::Operation *module);

} // namespace lowlp

#endif // LOWLP_ANALYSIS_SOURCEOP_H
