//===- InitPasses.cpp - the passes that lowlp knows -----------------------===//
#include "lowlp/Conversion/Passes.h"
#include "lowlp/InitAll.h"
#include "lowlp/Pipelines/Pipelines.h"
#include "lowlp/Target/Passes.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Transforms/Passes.h"

void lowlp::registerAllPasses() {
  registerConvertToThread();
  registerConvertThreadToCPU();
  registerConvertThreadToNVVM();
  registerDecomposeBitSlices();
  registerEmitPTX();
  registerExpandClusters();
  registerExpandExchanges();
  registerFoldScales();
  registerInferLayouts();
  registerPipelineLoops();
  registerPlanDecode();
  registerPlanMemory();
  registerReinterpretLayouts();
  registerSinkSelects();
  registerUseWarpgroups();
  registerVectorizeLookups();
  registerPipelines();
  mlir::registerTransformsPasses();
}
