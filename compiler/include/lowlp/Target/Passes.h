//===- Passes.h - text and code from the machine level ----------*- C++ -*-===//
#ifndef LOWLP_TARGET_PASSES_H
#define LOWLP_TARGET_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace lowlp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowlp/Target/Passes.h.inc"

} // namespace lowlp

#endif // LOWLP_TARGET_PASSES_H
