//===- NVPTXBackend.cpp - from the nvvm dialect to PTX --------------------===//
//
// gpu.module -> LLVM IR -> standard pipeline -> late conversions -> NVPTX ->
// text.
//
// The backend ends the process on some errors of a program (an instruction
// that the architecture lacks). A handler that throws turns these into an
// error; what LLVM held at that point leaks. The handler is global to the
// process, so only one thread at a time is in here.
//
//===----------------------------------------------------------------------===//
#include "NVPTXBackend.h"

#include "LLVMBackend.h"
#include "LateConversions.h"

#include "lowlp/Target/TargetInfo.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <utility>

using namespace llvm;

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static Expected<std::unique_ptr<TargetMachine>>
createMachine(StringRef chip, unsigned optLevel) {
  Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError(error);
  TargetOptions options;
  // A product and a sum are two roundings: mul.rn and add.rn, which ptxas does
  // not fuse.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  // The backend's own choice is the first version that has the chip, which
  // lacks instructions that later versions brought to it.
  const lowlp::TargetInfo *info = lowlp::TargetInfo::lookup(chip);
  if (!info)
    return createStringError(lowlp::TargetInfo::describeUnknown(chip));
  std::string version = "+ptx" + std::to_string(info->getPTXVersion());
  // All that the third level adds is a search for equal values, after the
  // optimiser's own. It finds nothing, and took a quarter of the time of large
  // kernels.
  auto level = static_cast<CodeGenOptLevel>(std::min(optLevel, 2u));
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, chip, version, options, Reloc::PIC_, std::nullopt, level));
  if (!machine)
    return createStringError("LLVM cannot compile for '" + chip + "'");
  return machine;
}

/// Inline PTX may be an instruction that all threads of a warp carry out
/// together, which must not move into a branch that only some of them take.
/// MLIR cannot say so; clang says it of every call of a kernel.
static void markConvergent(Module &module) {
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (Instruction &instruction : block)
        if (auto *call = dyn_cast<CallInst>(&instruction);
            call && call->isInlineAsm() && call->mayHaveSideEffects())
          call->setConvergent();
}

/// Seconds since this was asked the last time, or since it was made.
class Stopwatch {
public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last, now))
        .count();
  }

private:
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

static Expected<lowlp::PTXText>
compileUnguarded(mlir::Operation *op, StringRef chip, unsigned optLevel) {
  Stopwatch watch;
  lowlp::PTXText ptx;
  lowlp::LLVMErrors errors;
  LLVMContext context;
  errors.listenTo(context);
  Expected<std::unique_ptr<Module>> module =
      lowlp::translateToLLVMIR(op, context, "lowlp");
  if (!module)
    return module.takeError();
  Expected<std::unique_ptr<TargetMachine>> machine =
      createMachine(chip, optLevel);
  if (!machine)
    return machine.takeError();
  markConvergent(**module);
  ptx.translateSeconds = watch.lap();
  lowlp::runPasses(**module, **machine,
                   [&](PassBuilder &builder, ModulePassManager &passes) {
                     lowlp::addStandardPasses(builder, passes, optLevel);
                     if (optLevel)
                       passes.addPass(createModuleToFunctionPassAdaptor(
                           lowlp::LateConversions()));
                   });
  ptx.optimizeSeconds = watch.lap();
  SmallString<0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      CodeGenFileType::AssemblyFile))
    return createStringError("LLVM's NVPTX backend cannot write PTX");
  passes.run(**module);
  if (Error error = errors.take())
    return error;
  ptx.text = std::string(text);
  ptx.generateSeconds = watch.lap();
  return ptx;
}

Expected<lowlp::PTXText>
lowlp::compileToPTX(mlir::Operation *op, StringRef chip, unsigned optLevel) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> guard(mutex);
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  ScopedFatalErrorHandler handler([](void *, const char *message, bool) {
    throw std::runtime_error(message);
  });
  try {
    return compileUnguarded(op, chip, optLevel);
  } catch (const std::runtime_error &error) {
    return createStringError(error.what());
  }
}
