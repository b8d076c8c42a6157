//===- LLVMBackend.cpp - what both targets ask of LLVM --------------------===//
#include "LLVMBackend.h"

#include "mlir/IR/Operation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

void lowlp::LLVMErrors::listenTo(LLVMContext &context) {
  context.setDiagnosticHandlerCallBack(
      [](const DiagnosticInfo *diagnostic, void *listener) {
        auto &errors = *static_cast<LLVMErrors *>(listener);
        if (auto *frame = dyn_cast<DiagnosticInfoStackSize>(diagnostic))
          errors.frameBytes += frame->getStackSize();
        if (diagnostic->getSeverity() != DS_Error)
          return;
        raw_string_ostream stream(errors.text);
        stream << (stream.str().empty() ? "" : "; ");
        DiagnosticPrinterRawOStream printer(stream);
        diagnostic->print(printer);
      },
      this);
}

Error lowlp::LLVMErrors::take() {
  if (text.empty())
    return Error::success();
  return createStringError(std::exchange(text, {}));
}

Expected<std::unique_ptr<Module>> lowlp::translateToLLVMIR(mlir::Operation *op,
                                                           LLVMContext &context,
                                                           StringRef name) {
  std::unique_ptr<Module> module =
      mlir::translateModuleToLLVMIR(op, context, name);
  if (!module)
    return createStringError("translation to LLVM IR failed");
  return module;
}

static OptimizationLevel getLevel(unsigned optLevel) {
  switch (optLevel) {
  case 0:
    return OptimizationLevel::O0;
  case 1:
    return OptimizationLevel::O1;
  case 2:
    return OptimizationLevel::O2;
  default:
    return OptimizationLevel::O3;
  }
}

void lowlp::runPasses(
    Module &module, TargetMachine &machine,
    function_ref<void(PassBuilder &, ModulePassManager &)> addPasses) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  // A program that wants copies of a body writes them; those of a loop of
  // copies with many stages would be fetched for each launch, and are never
  // hot.
  PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  addPasses(builder, passes);
  passes.run(module, modules);
}

void lowlp::addStandardPasses(PassBuilder &builder, ModulePassManager &passes,
                              unsigned optLevel) {
  OptimizationLevel level = getLevel(optLevel);
  passes.addPass(optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                               : builder.buildPerModuleDefaultPipeline(level));
}
