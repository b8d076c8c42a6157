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

/// The IEEE binary32 pattern of `value`.
inline uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
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

/// `value` rounded to bfloat16, to nearest, ties to even. NaN stays NaN.
inline uint16_t floatToBF16(float value) {
  uint32_t bits = floatToBits(value);
  if (value != value)
    return uint16_t(bits >> 16 | 0x40u);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// `value` rounded to IEEE binary16, to nearest, ties to even. NaN stays NaN.
inline uint16_t floatToF16(float value) {
  uint32_t bits = floatToBits(value);
  auto sign = uint16_t(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) // 65520, halfway to what would come next
    return sign | 0x7c00u;
  if (magnitude < 0x38800000u) // below 2^-14: a multiple of 2^-24
    // Adding 0.5 lines the sum's last bit up with 2^-24.
    return sign |
           uint16_t(floatToBits(bitsToFloat(magnitude) + 0.5f) - 0x3f000000u);
  uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return sign | uint16_t((rounded - (112u << 23)) >> 13);
}

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_HALFFLOAT_H
