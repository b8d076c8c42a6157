//===- ByteFloat.h - the 8-bit floats of mma as bit patterns ----*- C++ -*-===//
//
// PTX ISA, "Alternate Floating-Point Data Formats".
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_BYTEFLOAT_H
#define LOWLP_CPU_BYTEFLOAT_H

#include "lowlp/CPU/HalfFloat.h"

namespace lowlp {
namespace cpu {

/// The value of an e5m2 pattern, exactly: the upper half of binary16.
inline float e5m2ToFloat(uint8_t bits) {
  return f16ToFloat(uint16_t(bits << 8));
}

/// The value of an e4m3 pattern, exactly. The largest magnitude is NaN, and
/// there is no infinity.
inline float e4m3ToFloat(uint8_t bits) {
  uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu)
    return bitsToFloat(0x7fc00000u);
  float value;
  if (magnitude < 8)
    value = float(magnitude) * 0x1p-9f;
  else
    value = bitsToFloat((magnitude << 20) + (120u << 23));
  return bits & 0x80u ? -value : value;
}

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_BYTEFLOAT_H
