//===- lowlp-lsp-server.cpp - the language server for .mlir files ---------===//
#include "lowlp/Tools/Tools.h"

int main(int argc, char **argv) { return lowlp::runLspServer(argc, argv); }
