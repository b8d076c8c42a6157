//===- Mma.h - The arithmetic of warp-level matrix products -----*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_MMA_H
#define LOWLP_CPU_LIB_MMA_H

#include <cstdint>

namespace lowlp {
namespace cpu {

/// One lane's fragments of A, B, C and D (see `lowlpCpuMma`).
struct MmaOperands {
  const void *a;
  const void *b;
  const void *c;
  void *d;
};

/// Writes D = A * B + C of one m16n8k16 `mma` to the lanes' `d`, reading all
/// operands before. Requires: `kind` is a `LowlpMmaKind`, `lanes` has 32
/// entries.
void multiplyM16N8K16(int32_t kind, const MmaOperands *lanes);

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_MMA_H
