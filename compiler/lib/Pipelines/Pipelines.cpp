//===- Pipelines.cpp - the only ways through the compiler -----------------===//
#include "lowlp/Pipelines/Pipelines.h"

#include "lowlp/Conversion/Passes.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Target/Passes.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace lowlp;

static void addCleanup(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void lowlp::buildToThreadPipeline(OpPassManager &manager,
                                  const PipelineOptions &options) {
  if (options.optLevel > 0)
    manager.addNestedPass<KernelOp>(createInferLayouts());
  manager.addNestedPass<KernelOp>(createReinterpretLayouts());
  if (options.optLevel > 0) {
    ChooseRingsOptions rings;
    rings.arch = options.arch;
    manager.addNestedPass<KernelOp>(createChooseRings(rings));
    PipelineLoopsOptions pipelining;
    pipelining.arch = options.arch;
    manager.addNestedPass<KernelOp>(createPipelineLoops(pipelining));
    manager.addNestedPass<KernelOp>(createFoldScales());
    PlanDecodeOptions decoding;
    decoding.arch = options.arch;
    manager.addNestedPass<KernelOp>(createPlanDecode(decoding));
    UseWarpgroupsOptions warpgroups;
    warpgroups.arch = options.arch;
    manager.addNestedPass<KernelOp>(createUseWarpgroups(warpgroups));
    manager.addNestedPass<KernelOp>(createFloatSums());
    manager.addNestedPass<KernelOp>(createVectorizeLookups());
    manager.addNestedPass<KernelOp>(createDecomposeBitSlices());
    PlaceCodebooksOptions placing;
    placing.arch = options.arch;
    manager.addNestedPass<KernelOp>(createPlaceCodebooks(placing));
  }
  manager.addNestedPass<KernelOp>(createExpandExchanges());
  manager.addNestedPass<KernelOp>(createPlanMemory());
  ConvertToThreadOptions conversion;
  conversion.arch = options.arch;
  manager.addPass(createConvertToThread(conversion));
  addCleanup(manager);
}

void lowlp::buildToNVVMPipeline(OpPassManager &manager,
                                const PipelineOptions &options) {
  buildToThreadPipeline(manager, options);
  if (options.optLevel > 0)
    manager.addPass(createSinkSelects());
  ConvertThreadToNVVMOptions lowering;
  lowering.arch = options.arch;
  manager.addPass(createConvertThreadToNVVM(lowering));
  addCleanup(manager);
}

void lowlp::buildToPTXPipeline(OpPassManager &manager,
                               const PipelineOptions &options) {
  buildToNVVMPipeline(manager, options);
  EmitPTXOptions emission;
  emission.arch = options.arch;
  emission.optLevel = options.optLevel;
  manager.addPass(createEmitPTX(emission));
}

void lowlp::buildToCPUPipeline(OpPassManager &manager,
                               const PipelineOptions &options) {
  manager.addNestedPass<KernelOp>(createExpandClusters());
  buildToThreadPipeline(manager, options);
  manager.addPass(createConvertThreadToCPU());
  addCleanup(manager);
}

void lowlp::registerPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "lowlp-to-thread", "from the block level to the program of one thread",
      buildToThreadPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "lowlp-to-nvvm", "from the block level to the llvm and nvvm dialects",
      buildToNVVMPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "lowlp-to-ptx", "from the block level to PTX in a gpu.binary",
      buildToPTXPipeline);
  PassPipelineRegistration<PipelineOptions>(
      "lowlp-to-cpu", "from the block level to host code in the llvm dialect",
      buildToCPUPipeline);
}
