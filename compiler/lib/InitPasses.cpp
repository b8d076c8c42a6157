//===- InitPasses.cpp - the passes that lowlp knows -----------------------===//
#include "lowlp/Conversion/Passes.h"
#include "lowlp/InitAll.h"
#include "lowlp/Target/Passes.h"

#include "mlir/Transforms/Passes.h"

void lowlp::registerAllPasses() {
#ifdef LOWLP_HAS_TO_THREAD
  registerConvertToThread();
#endif
  registerConvertThreadToNVVM();
  registerEmitPTX();
  mlir::registerTransformsPasses();
}
