//===- LspServer.cpp - what an editor asks of a file ----------------------===//
#include "lowlp/InitAll.h"
#include "lowlp/Tools/Tools.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/LogicalResult.h"

int lowlp::runLspServer(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
