//===- MathFunctions.cpp - functions of f32 on the host -------------------===//
//
// LLVM writes calls of these for its intrinsics: exp2f and log2f always, fmaf
// where the host has no such instruction, ldexpf for powers of integers.
//
//===----------------------------------------------------------------------===//
#include "MathFunctions.h"

#include <cmath>

static float exp2OfFloat(float x) {
  return static_cast<float>(std::exp2(double(x)));
}
static float log2OfFloat(float x) {
  return static_cast<float>(std::log2(double(x)));
}
static float fmaOfFloat(float a, float b, float c) { return std::fma(a, b, c); }
static float ldexpOfFloat(float x, int exponent) {
  return std::ldexp(x, exponent);
}

llvm::ArrayRef<LowlpCpuSymbol> lowlp::getMathFunctions() {
  static const LowlpCpuSymbol symbols[] = {
      {"exp2f", reinterpret_cast<void *>(&exp2OfFloat)},
      {"log2f", reinterpret_cast<void *>(&log2OfFloat)},
      {"fmaf", reinterpret_cast<void *>(&fmaOfFloat)},
      {"ldexpf", reinterpret_cast<void *>(&ldexpOfFloat)},
  };
  return symbols;
}
