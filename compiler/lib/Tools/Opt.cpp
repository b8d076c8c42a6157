//===- Opt.cpp - run passes on a file -------------------------------------===//
#include "lowlp/InitAll.h"
#include "lowlp/Tools/Tools.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int lowlp::runOpt(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  // What `--help` begins with; the options of LLVM follow.
  std::string overview = "the compiler of lowlp, pass by pass\n\n" +
                         describePasses() +
                         "\nWhat passes did, or did not and why: "
                         "--remarks-filter=.* --remark-format=emitRemark\n";
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, overview, registry));
}
