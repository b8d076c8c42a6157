//===- LLVMBackend.h - what both targets ask of LLVM ------------*- C++ -*-===//
#ifndef LOWLP_LIB_TARGET_LLVMBACKEND_H
#define LOWLP_LIB_TARGET_LLVMBACKEND_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace lowlp {

/// The LLVM IR of `op`, a module whose contents are of the machine level.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVMIR(mlir::Operation *op, llvm::LLVMContext &context,
                  llvm::StringRef name);

/// Runs LLVM's standard pipeline at `optLevel`, 0 to 3, on `module`, after
/// giving it the triple and the data layout of `machine`.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned optLevel);

} // namespace lowlp

#endif // LOWLP_LIB_TARGET_LLVMBACKEND_H
