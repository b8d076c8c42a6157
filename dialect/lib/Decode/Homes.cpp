//===- Homes.cpp - Where the bits of a number of a compute type are -------===//
#include "Homes.h"

#include <cmath>

using namespace lowlp;

namespace {
/// What the bits of a number of a compute type are.
struct Layout {
  int mantissaBits;
  int exponentBits;
};
} // namespace

static Layout getLayout(ComputeType compute) {
  switch (compute) {
  case ComputeType::F16:
    return {10, 5};
  case ComputeType::BF16:
    return {7, 8};
  case ComputeType::S8:
    return {7, 0};
  case ComputeType::E4M3:
    return {3, 4};
  case ComputeType::B1:
    break;
  }
  return {0, 0};
}

static int getBias(int exponentBits) { return (1 << (exponentBits - 1)) - 1; }

Result<Homes> Homes::get(const CodeFormat &format, ComputeType compute) {
  auto fail = [&](const std::string &what) -> Result<Homes> {
    return Error{"decode plan: " + getName(compute) +
                 " does not hold the values of " + format.name() + ": " + what};
  };
  if (format.kind == CodeFormat::Kind::Table ||
      format.kind == CodeFormat::Kind::Vectors)
    return Error{"decode plan: codes of " + format.name() +
                 " are looked up in a table, not computed"};
  Layout layout = getLayout(compute);
  Homes homes(format, compute);
  if (compute == ComputeType::S8) {
    if (format.kind == CodeFormat::Kind::Float)
      return fail("floats are not integers");
    homes.kind = Kind::Linear;
    homes.window = 8;
    return homes;
  }
  int unit = 1 - getBias(layout.exponentBits) - layout.mantissaBits;
  homes.window = layout.mantissaBits + 1;
  homes.unitExponent = unit;
  if (format.kind == CodeFormat::Kind::Integer) {
    homes.kind = Kind::Linear;
    if (format.bits <= homes.window)
      return homes;
    if (compute != ComputeType::E4M3 || format.bits > homes.window + 1)
      return fail("it has " + std::to_string(homes.window) +
                  " significant bits");
    homes.kind = Kind::ByTable;
    return homes;
  }
  if (format.mantissaBits > layout.mantissaBits)
    return fail("it has " + std::to_string(layout.mantissaBits) +
                " bits of mantissa");
  if (format.exponentBits > layout.exponentBits)
    return fail("it has " + std::to_string(layout.exponentBits) +
                " bits of exponent");
  if (format.exponentBits == 1) {
    homes.kind = Kind::SignedLinear;
    return homes;
  }
  // The top exponent of f16 is no number, and so it is in e5m2 only.
  if (compute == ComputeType::F16 && format.exponentBits == 5 &&
      format.mantissaBits < 2) {
    homes.kind = Kind::ByF32;
    homes.roundedExponent = -1;
  }
  return homes;
}

int Homes::getNumShifts() const {
  switch (kind) {
  case Kind::Linear:
    return window - format.bits - leastShift + 1;
  case Kind::SignedLinear:
    return window - (format.bits - 1) + 1;
  case Kind::Fixed:
  case Kind::ByF32:
  case Kind::ByTable:
    return 1;
  }
  return 0;
}

int Homes::getHome(int bit, int shift) const {
  bool isSign = bit == format.bits - 1;
  switch (kind) {
  case Kind::Linear:
  case Kind::ByTable:
    return bit + shift + leastShift;
  case Kind::SignedLinear:
    return isSign ? getPartBits() - 1 : bit + shift;
  case Kind::Fixed:
    return isSign ? getPartBits() - 1
                  : getLayout(compute).mantissaBits - format.mantissaBits + bit;
  case Kind::ByF32:
    // Of the upper half of an f32 number.
    return isSign ? 15 : 7 - format.mantissaBits + bit;
  }
  return 0;
}

int Homes::getExponent(int shift) const {
  switch (kind) {
  case Kind::Linear:
    return unitExponent + shift + leastShift;
  case Kind::SignedLinear:
    // The value is a multiple of 2^(1 - Y).
    return unitExponent + shift - (1 - format.mantissaBits);
  case Kind::Fixed:
    return getBias(format.exponentBits) -
           getBias(getLayout(compute).exponentBits);
  case Kind::ByF32:
    return roundedExponent;
  case Kind::ByTable:
    return 0;
  }
  return 0;
}

uint32_t Homes::getFlip(int shift) const {
  bool isTopUsed = compute == ComputeType::S8 && !isUnsigned &&
                   shift + leastShift + format.bits == 8;
  return isTopUsed ? 0x80808080u : 0;
}

double Homes::getOffset(int shift) const {
  if (kind == Kind::ByTable)
    return -std::ldexp(1.0, format.bits - 1);
  return getFlip(shift) ? -std::ldexp(1.0, 7 - shift - leastShift) : 0;
}
