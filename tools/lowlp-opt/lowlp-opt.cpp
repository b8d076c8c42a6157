//===- lowlp-opt.cpp - run passes of lowlp on a file ----------------------===//
#include "lowlp/Tools/Tools.h"

int main(int argc, char **argv) { return lowlp::runOpt(argc, argv); }
