//===- HalfFloat.h - f16 and bf16 as bit patterns ---------------*- C++ -*-===//
//
// The 16-bit floats of `mma`, read without compiler support for them: the
// executor is built for the plain x86-64 and AArch64 baselines.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_HALFFLOAT_H
#define LOWLP_CPU_HALFFLOAT_H

#include <cstdint>
#include <cstring>

namespace lowlp {
namespace cpu {

/// The float whose IEEE binary32 pattern is `bits`.
inline float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The value of an IEEE binary16 pattern, exactly. Subnormals, infinities and
/// NaN payloads carry over.
inline float f16ToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return bitsToFloat(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  float value;
  if (magnitude < 0x400u)
    value = float(magnitude) * 0x1p-24f;
  else
    value = bitsToFloat((magnitude << 13) + (112u << 23));
  return sign ? -value : value;
}

/// The value of a bfloat16 pattern, exactly: the upper half of binary32.
inline float bf16ToFloat(uint16_t bits) {
  return bitsToFloat(uint32_t(bits) << 16);
}

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_HALFFLOAT_H
