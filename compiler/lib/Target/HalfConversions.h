//===- HalfConversions.h - 16-bit floats on the host ------------*- C++ -*-===//
#ifndef LOWLP_LIB_TARGET_HALFCONVERSIONS_H
#define LOWLP_LIB_TARGET_HALFCONVERSIONS_H

#include "lowlp/CPU/ABI.h"

#include "llvm/ADT/ArrayRef.h"

namespace lowlp {

/// The functions that LLVM calls to convert to and from f16 and bf16 where the
/// host has no instruction for it, under the names by which it calls them.
llvm::ArrayRef<LowlpCpuSymbol> getHalfConversions();

} // namespace lowlp

#endif // LOWLP_LIB_TARGET_HALFCONVERSIONS_H
