//===- PassRemarks.h - what passes say of what they do ----------*- C++ -*-===//
//
// MLIR's remark engine carries what passes did and why they did not. A remark
// has the name of its pass as category, by which `lowlp-opt --remarks-filter`
// chooses; the op; and in words the reason, or what was done:
//
//   [Missed] plan | Category:lowlp-plan-decode | Function=k | Op=lowlp.dot,
//     Reason="weights are scaled in f32"
//
// Without a listener a remark costs the test of a pointer, so reasons that take
// work to find are made in a function.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_PASSREMARKS_H
#define LOWLP_LIB_TRANSFORMS_PASSREMARKS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace lowlp {

/// Says that `pass` left `op` without `what`, and why.
void remarkDeclined(mlir::Operation *op, llvm::StringRef pass,
                    llvm::StringRef what,
                    llvm::function_ref<std::string()> reason);

/// Says that `op` got `what`, and which.
void remarkDone(mlir::Operation *op, llvm::StringRef pass, llvm::StringRef what,
                llvm::function_ref<std::string()> which);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_PASSREMARKS_H
