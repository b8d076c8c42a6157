//===- ScalarFormat.cpp - What a code of a few bits means -----------------===//
//
// Encoding a float rests on one fact: without the sign bit, codes ascend with
// the values, and between two neighbouring codes values are linear. With e the
// exponent of |x|, but no less than the one of subnormals, |x| / 2^(e - Y) is
// q + r with an integer q and 0 <= r < 1; the code below x is
//
//   (exponent field - 1) * 2^Y + q
//
// where q carries the implicit one of normal numbers into the exponent field,
// and r tells which of that code and the next is nearer. All steps scale by
// powers of two, so that nothing is rounded but once.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Numeric/ScalarFormat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

using namespace lowlp;

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

Result<ScalarFormat> ScalarFormat::integer(FormatKind kind, int64_t bits) {
  if (kind == FormatKind::Float)
    return Error{"a float is made of exponent and mantissa bits"};
  if (bits < 1 || bits > maxCodeBits)
    return Error{"an integer has 1 to 8 bits; found " + std::to_string(bits)};
  return ScalarFormat{kind, static_cast<int>(bits), 0, 0, SpecialValues::None};
}

std::vector<ScalarFormat> ScalarFormat::wideIntegers() {
  std::vector<ScalarFormat> formats;
  for (int bits : {16, 32})
    for (FormatKind kind :
         {FormatKind::SignedInteger, FormatKind::UnsignedInteger})
      formats.push_back({kind, bits, 0, 0, SpecialValues::None});
  return formats;
}

Result<ScalarFormat> ScalarFormat::floatingPoint(int64_t exponentBits,
                                                 int64_t mantissaBits) {
  constexpr int minBits = 3;
  bool inRange = exponentBits >= 1 && exponentBits < maxCodeBits &&
                 mantissaBits >= 0 && mantissaBits < maxCodeBits;
  int64_t bits = inRange ? 1 + exponentBits + mantissaBits : 0;
  if (bits < minBits || bits > maxCodeBits)
    return Error{"a float has a sign, at least 1 exponent bit, and 3 to 8 bits "
                 "in all; found " +
                 std::to_string(exponentBits) + " exponent and " +
                 std::to_string(mantissaBits) + " mantissa bits"};
  SpecialValues specials = SpecialValues::None;
  if (bits == 8 && exponentBits == 4)
    specials = SpecialValues::NanOnly;
  else if (bits == 8 && (exponentBits == 5 || exponentBits == 3))
    specials = SpecialValues::IEEE;
  return ScalarFormat{FormatKind::Float, static_cast<int>(bits),
                      static_cast<int>(exponentBits),
                      static_cast<int>(mantissaBits), specials};
}

ScalarFormat ScalarFormat::f16() {
  return {FormatKind::Float, 16, 5, 10, SpecialValues::IEEE};
}

ScalarFormat ScalarFormat::bf16() {
  return {FormatKind::Float, 16, 8, 7, SpecialValues::IEEE};
}

ScalarFormat ScalarFormat::f32() {
  return {FormatKind::Float, 32, 8, 23, SpecialValues::IEEE};
}

std::vector<ScalarFormat> ScalarFormat::all() {
  std::vector<ScalarFormat> formats;
  for (FormatKind kind : {FormatKind::SignedInteger,
                          FormatKind::UnsignedInteger, FormatKind::Bipolar})
    for (int bits = 1; bits <= maxCodeBits; ++bits)
      formats.push_back(*integer(kind, bits));
  for (int bits = 3; bits <= maxCodeBits; ++bits)
    for (int exponentBits = 1; exponentBits < bits; ++exponentBits)
      formats.push_back(*floatingPoint(exponentBits, bits - 1 - exponentBits));
  std::vector<ScalarFormat> wide = wideIntegers();
  formats.insert(formats.end(), wide.begin(), wide.end());
  formats.insert(formats.end(), {f16(), bf16(), f32()});
  return formats;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Removes `prefix` from `text` if it is there.
static bool consume(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix)
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Removes one decimal digit; all numbers in names have one.
static std::optional<int> consumeDigit(std::string_view &text) {
  if (text.empty() || text[0] < '0' || text[0] > '9')
    return std::nullopt;
  int digit = text[0] - '0';
  text.remove_prefix(1);
  return digit;
}

/// The format of "f6e3m2" or "float6_e3m2".
static std::optional<ScalarFormat> parseFloat(std::string_view text) {
  bool isLong = consume(text, "float");
  if (!isLong && !consume(text, "f"))
    return std::nullopt;
  std::optional<int> bits = consumeDigit(text);
  if (!bits || (isLong && !consume(text, "_")) || !consume(text, "e"))
    return std::nullopt;
  std::optional<int> exponentBits = consumeDigit(text);
  if (!exponentBits || !consume(text, "m"))
    return std::nullopt;
  std::optional<int> mantissaBits = consumeDigit(text);
  if (!mantissaBits || !text.empty())
    return std::nullopt;
  Result<ScalarFormat> format =
      ScalarFormat::floatingPoint(*exponentBits, *mantissaBits);
  if (!format || format->bits != *bits)
    return std::nullopt;
  return *format;
}

/// The format of "int6", "uint4" or "bipolar2".
static std::optional<ScalarFormat> parseInteger(std::string_view text) {
  FormatKind kind;
  if (consume(text, "int"))
    kind = FormatKind::SignedInteger;
  else if (consume(text, "uint"))
    kind = FormatKind::UnsignedInteger;
  else if (consume(text, "bipolar"))
    kind = FormatKind::Bipolar;
  else
    return std::nullopt;
  std::optional<int> bits = consumeDigit(text);
  if (!bits || !text.empty())
    return std::nullopt;
  Result<ScalarFormat> format = ScalarFormat::integer(kind, *bits);
  if (!format)
    return std::nullopt;
  return *format;
}

Result<ScalarFormat> ScalarFormat::parse(std::string_view name) {
  if (name == "f16" || name == "float16")
    return f16();
  if (name == "bf16" || name == "bfloat16")
    return bf16();
  if (name == "f32" || name == "float32")
    return f32();
  for (const ScalarFormat &wide : wideIntegers())
    if (name == wide.name())
      return wide;
  std::optional<ScalarFormat> format = parseInteger(name);
  if (!format)
    format = parseFloat(name);
  if (!format)
    return Error{"there is no type '" + std::string(name) +
                 "'; allowed are int1 to int8, int16, int32, uint1 to uint8, "
                 "uint16, uint32, bipolar1 to bipolar8, f{b}e{X}m{Y} with b = "
                 "1 + X + Y from 3 to 8 and X at least 1, f16, bf16 and f32"};
  return *format;
}

std::string ScalarFormat::name() const {
  std::string width = std::to_string(bits);
  switch (kind) {
  case FormatKind::SignedInteger:
    return "int" + width;
  case FormatKind::UnsignedInteger:
    return "uint" + width;
  case FormatKind::Bipolar:
    return "bipolar" + width;
  case FormatKind::Float:
    break;
  }
  if (!hasCodes())
    return *this == bf16() ? "bf16" : "f" + width;
  return "f" + width + "e" + std::to_string(exponentBits) + "m" +
         std::to_string(mantissaBits);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

uint32_t ScalarFormat::maxMagnitude() const {
  uint32_t top = (uint32_t(1) << (exponentBits + mantissaBits)) - 1;
  switch (specials) {
  case SpecialValues::None:
    return top;
  case SpecialValues::NanOnly:
    return top - 1;
  case SpecialValues::IEEE:
    break;
  }
  // The code before the first of the top exponent, which is infinity.
  uint32_t infinity = ((uint32_t(1) << exponentBits) - 1) << mantissaBits;
  return infinity - 1;
}

double ScalarFormat::magnitudeValue(uint32_t magnitude) const {
  uint32_t implicitOne = uint32_t(1) << mantissaBits;
  int exponentField = static_cast<int>(magnitude >> mantissaBits);
  uint32_t significand = magnitude & (implicitOne - 1);
  if (exponentField == 0)
    exponentField = 1;
  else
    significand += implicitOne;
  return std::ldexp(static_cast<double>(significand),
                    exponentField - exponentBias() - mantissaBits);
}

double ScalarFormat::max() const {
  switch (kind) {
  case FormatKind::SignedInteger:
    return static_cast<double>((int64_t(1) << (bits - 1)) - 1);
  case FormatKind::UnsignedInteger:
  case FormatKind::Bipolar:
    return static_cast<double>((int64_t(1) << bits) - 1);
  case FormatKind::Float:
    break;
  }
  return magnitudeValue(maxMagnitude());
}

double ScalarFormat::min() const {
  if (kind == FormatKind::SignedInteger)
    return -static_cast<double>(int64_t(1) << (bits - 1));
  return isSigned() ? -max() : 0;
}

double ScalarFormat::decode(uint8_t code) const {
  assert(hasCodes() && code < (1 << bits) && "no such code");
  int signBit = 1 << (bits - 1);
  switch (kind) {
  case FormatKind::SignedInteger:
    return (code ^ signBit) - signBit;
  case FormatKind::UnsignedInteger:
    return code;
  case FormatKind::Bipolar:
    return 2 * code - ((1 << bits) - 1);
  case FormatKind::Float:
    break;
  }
  uint32_t magnitude = code & (signBit - 1);
  double value;
  if (magnitude <= maxMagnitude())
    value = magnitudeValue(magnitude);
  else if (specials == SpecialValues::IEEE && magnitude == maxMagnitude() + 1)
    value = std::numeric_limits<double>::infinity();
  else
    value = std::numeric_limits<double>::quiet_NaN();
  return code & signBit ? -value : value;
}

/// The integer nearest to `lower` + `rest`, with 0 <= `rest` < 1; halves go to
/// the even one.
static uint32_t roundToEven(uint32_t lower, double rest) {
  bool up = rest > 0.5 || (rest == 0.5 && lower % 2 == 1);
  return lower + (up ? 1 : 0);
}

uint8_t ScalarFormat::encodeFloat(double value) const {
  uint32_t sign = std::signbit(value) ? 1u << (bits - 1) : 0;
  double magnitude = std::fabs(value);
  if (magnitude >= max())
    return static_cast<uint8_t>(sign | maxMagnitude());
  int minExponent = 1 - exponentBias();
  int exponent = magnitude == 0 ? minExponent
                                : std::max(std::ilogb(magnitude), minExponent);
  double scaled = std::ldexp(magnitude, mantissaBits - exponent);
  double whole = std::floor(scaled);
  uint32_t lower =
      (static_cast<uint32_t>(exponent - minExponent) << mantissaBits) +
      static_cast<uint32_t>(whole);
  return static_cast<uint8_t>(sign | roundToEven(lower, scaled - whole));
}

uint8_t ScalarFormat::encodeInteger(double value) const {
  // By magnitude, where floor and the rest are exact; a number and its negative
  // are both even or both odd, and so are their codes.
  double magnitude = std::fabs(value);
  double whole = std::floor(magnitude);
  int rounded = static_cast<int>(
      roundToEven(static_cast<uint32_t>(whole), magnitude - whole));
  uint32_t mask = (1u << bits) - 1;
  return static_cast<uint8_t>((value < 0 ? -rounded : rounded) & mask);
}

uint8_t ScalarFormat::encodeBipolar(double value) const {
  // The values are the odd numbers and the midpoints the even ones, so that the
  // integer below decides, whatever follows the point.
  int whole = static_cast<int>(std::floor(value));
  bool isOdd = whole % 2 != 0;
  int lowerCode = (whole - (isOdd ? 0 : 1) - static_cast<int>(min())) / 2;
  bool up = !isOdd && (value > whole || lowerCode % 2 == 1);
  return static_cast<uint8_t>(lowerCode + (up ? 1 : 0));
}

Result<uint8_t> ScalarFormat::encode(double value) const {
  assert(hasCodes() && "the format has no codes");
  if (std::isnan(value))
    return Error{"NaN has no code in " + name()};
  if (isFloat())
    return encodeFloat(value);
  double clamped = std::clamp(value, min(), max());
  return kind == FormatKind::Bipolar ? encodeBipolar(clamped)
                                     : encodeInteger(clamped);
}
