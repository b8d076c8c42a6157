//===- Report.h - what passes say of a kernel -------------------*- C++ -*-===//
#ifndef LOWLP_IR_REPORT_H
#define LOWLP_IR_REPORT_H

#include "mlir/IR/Operation.h"

namespace lowlp {

/// Sets the entry `name` of the attribute `lowlp.report` of `kernel`, which is
/// there to be read by people. The entries that exist are listed with the
/// types that they must have in dialect/lib/IR/Attributes.cpp, which verifies
/// them.
void setReport(mlir::Operation *kernel, llvm::StringRef name,
               mlir::Attribute value);

/// The same with an array of strings, one for each of `lines`.
void setReport(mlir::Operation *kernel, llvm::StringRef name,
               llvm::ArrayRef<std::string> lines);

} // namespace lowlp

#endif // LOWLP_IR_REPORT_H
