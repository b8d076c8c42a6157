//===- NVPTXBackend.h - from the nvvm dialect to PTX ------------*- C++ -*-===//
#ifndef LOWLP_LIB_TARGET_NVPTXBACKEND_H
#define LOWLP_LIB_TARGET_NVPTXBACKEND_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace lowlp {

/// PTX, and the seconds that each step to it took.
struct PTXText {
  std::string text;
  double translateSeconds = 0;
  double optimizeSeconds = 0;
  double generateSeconds = 0;
};

/// PTX for `chip` from `op`, a gpu.module. May be called from several threads.
llvm::Expected<PTXText> compileToPTX(mlir::Operation *op, llvm::StringRef chip,
                                     unsigned optLevel);

} // namespace lowlp

#endif // LOWLP_LIB_TARGET_NVPTXBACKEND_H
