//===- Tools.h - the command-line tools as functions ------------*- C++ -*-===//
//
// The programs in tools/ are calls of these. They are functions because a wheel
// holds no programs but one shared library, which the Python package runs.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_TOOLS_TOOLS_H
#define LOWLP_TOOLS_TOOLS_H

namespace lowlp {

/// Runs passes on a file, as `lowlp-opt` does. Returns the exit status. At most
/// once in a process.
int runOpt(int argc, char **argv);

/// Answers an editor on standard input and output until it says goodbye, as
/// `lowlp-lsp-server` does. Returns the exit status. At most once in a process.
int runLspServer(int argc, char **argv);

} // namespace lowlp

#endif // LOWLP_TOOLS_TOOLS_H
