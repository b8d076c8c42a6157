//===- Numbers.cpp - The numbers that tensor cores multiply ---------------===//
#include "lowlp/Decode/DecodePlan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace lowlp;

/// 2^exponent. Requires: a normal number of 64 bits.
static double powerOfTwo(int exponent) {
  uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return power;
}

/// The exponent of a number that is 2^exponent times 1 to 2; for numbers that
/// are subnormal with 64 bits some lower one.
static int getExponent(double magnitude) {
  uint64_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  return static_cast<int>(bits >> 52) - 1023;
}

namespace {
/// A float of 16 bits with infinities.
struct HalfFormat {
  int mantissaBits;
  int exponentBits;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int maxExponent() const { return (1 << exponentBits) - 1; }

  double decode(uint32_t bits) const {
    double sign = bits >> 15 & 1 ? -1.0 : 1.0;
    int exponent = bits >> mantissaBits & maxExponent();
    double mantissa = bits & ((1u << mantissaBits) - 1);
    if (exponent == maxExponent())
      return mantissa ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    double significand = exponent ? mantissa + (1 << mantissaBits) : mantissa;
    return sign * significand *
           powerOfTwo(std::max(exponent, 1) - bias() - mantissaBits);
  }

  uint32_t encode(double value) const {
    uint32_t sign = std::signbit(value) ? 0x8000 : 0;
    uint32_t infinity = static_cast<uint32_t>(maxExponent()) << mantissaBits;
    if (std::isnan(value))
      return infinity | 1u << (mantissaBits - 1);
    double magnitude = std::fabs(value);
    if (magnitude == 0)
      return sign;
    if (std::isinf(magnitude))
      return sign | infinity;
    int exponent = std::max(getExponent(magnitude), 1 - bias());
    // The unit in the last place of the result, then the nearest multiple.
    int unit = exponent - mantissaBits;
    double scaled = magnitude * powerOfTwo(-unit);
    // A double of 2^52 or more has no fraction: the sum rounds to nearest even.
    double whole = scaled + powerOfTwo(52) - powerOfTwo(52);
    uint32_t code = static_cast<uint32_t>(whole);
    if (unit > 1 - bias() - mantissaBits)
      code += static_cast<uint32_t>(unit - (1 - bias() - mantissaBits))
              << mantissaBits;
    return sign | std::min(code, infinity);
  }
};
} // namespace

static constexpr HalfFormat kF16 = {10, 5};
static constexpr HalfFormat kBF16 = {7, 8};

static ScalarFormat getE4M3() {
  return *ScalarFormat::floatingPoint(/*exponentBits=*/4, /*mantissaBits=*/3);
}

double lowlp::decodeNumber(ComputeType compute, uint32_t bits) {
  switch (compute) {
  case ComputeType::F16:
    return kF16.decode(bits & 0xffff);
  case ComputeType::BF16:
    return kBF16.decode(bits & 0xffff);
  case ComputeType::S8:
    return static_cast<int8_t>(bits & 0xff);
  case ComputeType::E4M3:
    return getE4M3().decode(static_cast<uint8_t>(bits & 0xff));
  case ComputeType::B1:
    return bits & 1;
  }
  return 0;
}

uint32_t lowlp::encodeNumber(ComputeType compute, double value) {
  switch (compute) {
  case ComputeType::F16:
    return kF16.encode(value);
  case ComputeType::BF16:
    return kBF16.encode(value);
  case ComputeType::S8:
    return static_cast<uint8_t>(static_cast<int8_t>(
        std::nearbyint(std::fmin(std::fmax(value, -128), 127))));
  case ComputeType::E4M3:
    return *getE4M3().encode(value);
  case ComputeType::B1:
    return value != 0;
  }
  return 0;
}
