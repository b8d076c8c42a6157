//===- Tools.cpp - the command-line tools for callers in C ----------------===//
#include "lowlp/Tools/Tools.h"

#include "lowlp-c/Lowlp.h"

int lowlpRunOpt(int argc, char **argv) { return lowlp::runOpt(argc, argv); }

int lowlpRunLspServer(int argc, char **argv) {
  return lowlp::runLspServer(argc, argv);
}
