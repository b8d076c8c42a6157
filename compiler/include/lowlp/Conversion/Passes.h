//===- Passes.h - from one level of the compiler to the next ----*- C++ -*-===//
#ifndef LOWLP_CONVERSION_PASSES_H
#define LOWLP_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace lowlp {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lowlp/Conversion/Passes.h.inc"

} // namespace lowlp

#endif // LOWLP_CONVERSION_PASSES_H
