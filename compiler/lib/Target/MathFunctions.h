//===- MathFunctions.h - functions of f32 on the host -----------*- C++ -*-===//
#ifndef LOWLP_LIB_TARGET_MATHFUNCTIONS_H
#define LOWLP_LIB_TARGET_MATHFUNCTIONS_H

#include "lowlp/CPU/ABI.h"

#include "llvm/ADT/ArrayRef.h"

namespace lowlp {

/// The functions of the C library that compiled code may call, under their
/// names there. Each rounds a result in double precision once, so that hosts
/// whose libraries differ in the last bits of an f32 agree.
llvm::ArrayRef<LowlpCpuSymbol> getMathFunctions();

} // namespace lowlp

#endif // LOWLP_LIB_TARGET_MATHFUNCTIONS_H
