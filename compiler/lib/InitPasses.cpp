//===- InitPasses.cpp - the passes that lowlp knows -----------------------===//
#include "lowlp/Conversion/Passes.h"
#include "lowlp/InitAll.h"
#include "lowlp/Pipelines/Pipelines.h"
#include "lowlp/Target/Passes.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lowlp;

using Factory = std::unique_ptr<Pass> (*)();

/// Every pass of lowlp, in the order in which pipelines run them.
static constexpr Factory kPasses[] = {
    createExpandClusters,   createInferLayouts,        createReinterpretLayouts,
    createChooseRings,      createPipelineLoops,       createFoldScales,
    createPlanDecode,       createUseWarpgroups,       createFloatSums,
    createVectorizeLookups, createDecomposeBitSlices,  createPlaceCodebooks,
    createExpandExchanges,  createPlanMemory,          createConvertToThread,
    createSinkSelects,      createConvertThreadToNVVM, createConvertThreadToCPU,
    createEmitPTX,
};

static constexpr llvm::StringLiteral kPipelines[] = {
    "lowlp-to-thread", "lowlp-to-nvvm", "lowlp-to-ptx", "lowlp-to-cpu"};

void lowlp::registerAllPasses() {
  for (Factory create : kPasses)
    registerPass(create);
  registerPipelines();
  registerTransformsPasses();
}

std::string lowlp::describePasses() {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto line = [&](StringRef name, StringRef summary) {
    os << llvm::formatv("  --{0,-30} {1}\n", name, summary);
  };
  os << "Pipelines:\n";
  for (StringRef name : kPipelines)
    line(name, PassPipelineInfo::lookup(name)->getPassDescription());
  os << "Passes:\n";
  for (Factory create : kPasses) {
    std::unique_ptr<Pass> pass = create();
    line(pass->getArgument(), pass->getDescription());
  }
  return text;
}
