//===- ThreadToCPU.cpp - from the thread level to host code ---------------===//
//
// 1. Describe the kernels on the module.
// 2. Move them out of their gpu.module: they become host functions.
// 3. Take care of divisions that a CPU would trap at.
// 4. Lower `scf` to blocks.
// 5. Lower them in one conversion in which whatever has no lowering is an
// error.
// 6. Let every loop ask whether to go on.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/KernelDescription.h"
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/Conversion/Passes.h"
#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace lowlp {
#define GEN_PASS_DEF_CONVERTTHREADTOCPU
#include "lowlp/Conversion/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

/// Moves the kernels of every gpu.module to `module`, adding them to `kernels`.
static LogicalResult hoistKernels(ModuleOp module,
                                  SmallVectorImpl<Operation *> &kernels) {
  for (auto gpuModule :
       llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>())) {
    for (Operation &op : llvm::make_early_inc_range(gpuModule.getOps())) {
      auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
      if (!kernel || !kernel.isKernel())
        return op.emitOpError("is not a kernel; on the CPU a gpu.module holds "
                              "kernels only");
      if (Operation *other = module.lookupSymbol(kernel.getName())) {
        InFlightDiagnostic diagnostic = kernel.emitOpError("kernel '")
                                        << kernel.getName()
                                        << "' has the name of another symbol";
        diagnostic.attachNote(other->getLoc()) << "the other symbol";
        return diagnostic;
      }
      kernels.push_back(kernel);
    }
    for (Operation &op : llvm::make_early_inc_range(gpuModule.getOps()))
      op.moveBefore(gpuModule);
    gpuModule.erase();
  }
  module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  return success();
}

static LogicalResult convert(MLIRContext *context,
                             ArrayRef<Operation *> kernels) {
  LLVMTypeConverter converter(context, getLoweringOptions(context));
  converter.addConversion([](simt::PtrType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  converter.addConversion([](simt::TensorMapType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  converter.addConversion([](simt::AccumulatorsType type) -> Type {
    return IntegerType::get(type.getContext(), 64);
  });
  ExecutorCalls calls(context);
  RewritePatternSet patterns(context);
  populateThreadToLLVMPatterns(converter, patterns);
  populateKernelToCPUPatterns(converter, patterns, calls);
  populateMemoryToCPUPatterns(converter, patterns, calls);
  populateAtomicsToCPUPatterns(converter, patterns, calls);
  populateMatricesToCPUPatterns(converter, patterns, calls);
  populateCollectivesToCPUPatterns(converter, patterns, calls);
  populateAsyncToCPUPatterns(converter, patterns, calls);
  populateWgmmaToCPUPatterns(converter, patterns, calls);
  populateWarpToCPUPatterns(converter, patterns, calls);
  populatePrintToCPUPatterns(converter, patterns, calls);
  LLVMConversionTarget target(*context);
  return applyFullConversion(kernels, target, std::move(patterns));
}

namespace {

struct ConvertThreadToCPU
    : lowlp::impl::ConvertThreadToCPUBase<ConvertThreadToCPU> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Operation *> kernels;
    if (failed(describeKernels(module)) ||
        failed(hoistKernels(module, kernels)))
      return signalPassFailure();
    for (Operation *kernel : kernels) {
      if (failed(verifyVectorSizes(kernel)))
        return signalPassFailure();
      guardDivisions(kernel);
      if (failed(lowerStructuredControlFlow(kernel)))
        return signalPassFailure();
    }
    if (failed(convert(&getContext(), kernels)))
      return signalPassFailure();
    insertPolls(module);
  }
};

} // namespace
