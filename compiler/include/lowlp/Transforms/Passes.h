//===- Passes.h - from the block level to the block level -------*- C++ -*-===//
#ifndef LOWLP_TRANSFORMS_PASSES_H
#define LOWLP_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace lowlp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowlp/Transforms/Passes.h.inc"

} // namespace lowlp

#endif // LOWLP_TRANSFORMS_PASSES_H
