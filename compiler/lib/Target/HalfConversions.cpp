//===- HalfConversions.cpp - 16-bit floats on the host --------------------===//
//
// The names and the calling convention are those of compiler-rt: a 16-bit float
// travels in a floating-point register, which is what _Float16 does in C++. To
// f16 and bf16 values are rounded to nearest, ties to even, once.
//
//===----------------------------------------------------------------------===//
#include "HalfConversions.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>

using namespace llvm;

static _Float16 fromBits(uint16_t bits) {
  _Float16 value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The bits of `value` in `semantics`, rounded once.
static _Float16 round(APFloat value, const fltSemantics &semantics) {
  bool losesInfo;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return fromBits(value.bitcastToAPInt().getZExtValue());
}

static float extendHalf(_Float16 half) {
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  APFloat value(APFloat::IEEEhalf(), APInt(16, bits));
  bool losesInfo;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToFloat();
}

static _Float16 truncateFloatToHalf(float value) {
  return round(APFloat(value), APFloat::IEEEhalf());
}

static _Float16 truncateDoubleToHalf(double value) {
  return round(APFloat(value), APFloat::IEEEhalf());
}

/// The upper half of the bits, plus one if the lower half is above the tie, or
/// at it and the upper half is odd. By hand, since x86 code calls it often.
static _Float16 truncateFloatToBFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value))
    return fromBits(bits >> 16 | 0x40);
  return fromBits((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static _Float16 truncateDoubleToBFloat(double value) {
  return round(APFloat(value), APFloat::BFloat());
}

ArrayRef<LowlpCpuSymbol> lowlp::getHalfConversions() {
  static const LowlpCpuSymbol symbols[] = {
      {"__extendhfsf2", reinterpret_cast<void *>(&extendHalf)},
      {"__truncsfhf2", reinterpret_cast<void *>(&truncateFloatToHalf)},
      {"__truncdfhf2", reinterpret_cast<void *>(&truncateDoubleToHalf)},
      {"__truncsfbf2", reinterpret_cast<void *>(&truncateFloatToBFloat)},
      {"__truncdfbf2", reinterpret_cast<void *>(&truncateDoubleToBFloat)},
  };
  return symbols;
}
