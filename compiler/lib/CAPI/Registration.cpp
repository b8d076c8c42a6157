//===- Registration.cpp - dialects and passes for callers in C ------------===//
#include "lowlp-c/Lowlp.h"

#include "lowlp/InitAll.h"

#include "mlir/CAPI/IR.h"

void lowlpRegisterAllDialects(MlirDialectRegistry registry) {
  lowlp::registerAllDialects(*unwrap(registry));
}

void lowlpRegisterAllPasses(void) { lowlp::registerAllPasses(); }
