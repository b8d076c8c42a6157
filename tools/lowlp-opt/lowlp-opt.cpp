//===- lowlp-opt.cpp - run passes of lowlp on a file ----------------------===//
#include "lowlp/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lowlp::registerAllDialects(registry);
  lowlp::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "lowlp optimizer driver\n", registry));
}
