//===- EmitPTX.cpp - compile every gpu.module to PTX ----------------------===//
#include "NVPTXBackend.h"

#include "lowlp/Analysis/SourceOp.h"
#include "lowlp/Target/Passes.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

namespace lowlp {
#define GEN_PASS_DEF_EMITPTX
#include "lowlp/Target/Passes.h.inc"
} // namespace lowlp

using namespace mlir;

/// Fails if `module` was lowered for another architecture than `arch`.
static LogicalResult verifyTarget(gpu::GPUModuleOp module, StringRef arch) {
  if (std::optional<ArrayAttr> targets = module.getTargets())
    for (auto target : targets->getAsRange<NVVM::NVVMTargetAttr>())
      if (target.getChip() != arch)
        return module.emitOpError("was lowered for ")
               << target.getChip() << ", but PTX is asked for " << arch;
  return success();
}

/// LLVM's translation takes for granted that code lies in functions.
static LogicalResult verifyAllInFunctions(gpu::GPUModuleOp module) {
  for (Operation &op : *module.getBody())
    if (!isa<SymbolOpInterface, LLVM::ModuleFlagsOp, LLVM::LinkerOptionsOp>(op))
      return op.emitOpError("must lie in a function");
  return success();
}

/// Fails for what no pass has lowered so far: PTX is made of the llvm and nvvm
/// dialects alone.
static LogicalResult verifyLowered(ModuleOp module) {
  for (Operation &op : module.getOps())
    if (op.getName().getDialectNamespace() == "lowlp")
      return emitError(op.getLoc())
             << op.getName()
             << " is of the block level, and PTX is made of the llvm and nvvm "
                "dialects; lowlp-to-ptx lowers it first";
  WalkResult result =
      module.walk([](gpu::GPUFuncOp op) {
        emitError(op.getLoc())
            << op->getName()
            << " is of the thread level, and PTX is made of the llvm and nvvm "
               "dialects; lowlp-convert-thread-to-nvvm lowers it first";
        return WalkResult::interrupt();
      });
  return failure(result.wasInterrupted());
}

namespace {

struct EmitPTX : lowlp::impl::EmitPTXBase<EmitPTX> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerBuiltinDialectTranslation(registry);
    registerGPUDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!lowlp::TargetInfo::lookupFor(module, arch))
      return signalPassFailure();
    if (optLevel > 3) {
      lowlp::emitErrorAtProgram(module)
          << "opt-level must be 0 to 3, but is " << optLevel.getValue();
      return signalPassFailure();
    }
    if (failed(verifyLowered(module)))
      return signalPassFailure();
    for (auto gpuModule :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
      if (failed(emit(gpuModule)))
        return signalPassFailure();
  }

  /// Replaces `module` by a gpu.binary with its PTX.
  LogicalResult emit(gpu::GPUModuleOp module) {
    if (failed(verifyTarget(module, arch)) ||
        failed(verifyAllInFunctions(module)))
      return failure();
    llvm::Expected<lowlp::PTXText> ptx =
        lowlp::compileToPTX(module, arch, optLevel);
    if (!ptx)
      return module.emitOpError("cannot become PTX: ")
             << llvm::toString(ptx.takeError());
    OpBuilder builder(module);
    auto target = NVVM::NVVMTargetAttr::get(&getContext(), optLevel,
                                            "nvptx64-nvidia-cuda", arch);
    auto object = gpu::ObjectAttr::get(target, gpu::CompilationTarget::Assembly,
                                       builder.getStringAttr(ptx->text));
    auto binary = gpu::BinaryOp::create(
        builder, module.getLoc(), module.getName(),
        /*offloadingHandler=*/Attribute(), ArrayRef<Attribute>{object});
    if (seconds)
      binary->setAttr(
          "lowlp.seconds",
          builder.getF64ArrayAttr({ptx->translateSeconds, ptx->optimizeSeconds,
                                   ptx->generateSeconds}));
    module.erase();
    return success();
  }
};

} // namespace
