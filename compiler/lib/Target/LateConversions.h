//===- LateConversions.h - 16-bit floats widened where used -----*- C++ -*-===//
//
// The optimiser moves the conversion of a loaded 16-bit float into the branch
// that loads it:
//
//   if (exists) { h = load; f = fpext h }          f = phi 0.0, f
//
// A thread then waits for memory there. Where f is used after a loop, and not
// in it, this pass joins the 16-bit values instead, and converts before that
// use:
//
//   if (exists) { h = load }     h = phi 0, h ... f = fpext h
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TARGET_LATECONVERSIONS_H
#define LOWLP_LIB_TARGET_LATECONVERSIONS_H

#include "llvm/IR/PassManager.h"

namespace lowlp {

struct LateConversions : llvm::PassInfoMixin<LateConversions> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace lowlp

#endif // LOWLP_LIB_TARGET_LATECONVERSIONS_H
