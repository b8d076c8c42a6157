//===- Diagnostics.cpp - diagnostics for callers that need UTF-8 ----------===//
#include "lowlp-c/Lowlp.h"

#include "mlir/CAPI/Diagnostics.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"

void lowlpDiagnosticPrint(MlirDiagnostic diagnostic, MlirStringCallback onText,
                          void *userData) {
  std::string text = llvm::json::fixUTF8(unwrap(diagnostic).str());
  onText(mlirStringRefCreate(text.data(), text.size()), userData);
}
