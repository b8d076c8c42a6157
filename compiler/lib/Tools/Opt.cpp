//===- Opt.cpp - run passes on a file -------------------------------------===//
#include "lowlp/InitAll.h"
#include "lowlp/Tools/Tools.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int lowlp::runOpt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "lowlp optimizer driver\n", registry));
}
