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

/// Whether `kind` is a `LowlpMmaKind`.
bool isMmaKind(int32_t kind);

/// Writes D = A * B + C of one `mma` to the lanes' `d`, reading all operands
/// before. Requires: `isMmaKind(kind)`; `lanes` has 32 entries.
void multiplyMatrices(int32_t kind, const MmaOperands *lanes);

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_MMA_H
