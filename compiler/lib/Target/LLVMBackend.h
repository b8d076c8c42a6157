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

/// The errors that LLVM reports in a context, such as an attribute that it
/// cannot read. Without a listener they end the process.
class LLVMErrors {
public:
  /// Hears what `context` reports from now on. Both stay where they are for as
  /// long as the context is used.
  void listenTo(llvm::LLVMContext &context);

  /// What was heard since the last call; success if that is nothing.
  llvm::Error take();

private:
  std::string text;
};

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
