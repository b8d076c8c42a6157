//===- LLVMBackend.h - what both targets ask of LLVM ------------*- C++ -*-===//
#ifndef LOWLP_LIB_TARGET_LLVMBACKEND_H
#define LOWLP_LIB_TARGET_LLVMBACKEND_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class PassBuilder;
class TargetMachine;
} // namespace llvm

namespace lowlp {

/// What LLVM reports in a context: errors, such as an attribute that it cannot
/// read, which end the process where nobody listens; and how large frames are.
class LLVMErrors {
public:
  /// Hears what `context` reports from now on. Both stay where they are for as
  /// long as the context is used.
  void listenTo(llvm::LLVMContext &context);

  /// What was heard since the last call; success if that is nothing.
  llvm::Error take();

  /// The sum of the frames of all functions compiled so far that have the
  /// attribute "warn-stack-size" of 0.
  uint64_t getFrameBytes() const { return frameBytes; }

private:
  std::string text;
  uint64_t frameBytes = 0;
};

/// The LLVM IR of `op`, a module whose contents are of the machine level.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVMIR(mlir::Operation *op, llvm::LLVMContext &context,
                  llvm::StringRef name);

/// Runs the passes that `addPasses` adds on `module`, after giving it the
/// triple and the data layout of `machine`.
void runPasses(
    llvm::Module &module, llvm::TargetMachine &machine,
    llvm::function_ref<void(llvm::PassBuilder &, llvm::ModulePassManager &)>
        addPasses);

/// Adds LLVM's standard pipeline at `optLevel`, 0 to 3.
void addStandardPasses(llvm::PassBuilder &builder,
                       llvm::ModulePassManager &passes, unsigned optLevel);

} // namespace lowlp

#endif // LOWLP_LIB_TARGET_LLVMBACKEND_H
