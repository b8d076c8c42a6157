//===- ScalarFormat.h - What a code of a few bits means ---------*- C++ -*-===//
//
// A scalar format gives each code of 1 to 8 bits a value (Tilus, sections 5.1
// and 6; bipolar: APT-LLM, bipolar-INT). The codes are:
//
//   int{B}      two's complement; int1 holds 0 and -1
//   uint{B}     the code itself
//   f{B}e{X}m{Y}  sign, X bits of exponent with bias 2^(X-1) - 1, Y bits of
//               mantissa; exponent field 0 holds zero and the subnormals
//   bipolar{B}  bit i is a sign of weight 2^i: the odd numbers 2q - (2^B - 1)
//
// Example: f4e2m1 has the values 0 0.5 1 1.5 2 3 4 6 and their negatives.
//
// f16, bf16, f32 and the integers of 16 and 32 bits are formats too, so that
// code which asks for bits and range need not tell them apart; they have no
// codes here.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_NUMERIC_SCALARFORMAT_H
#define LOWLP_NUMERIC_SCALARFORMAT_H

#include "lowlp/Layout/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lowlp {

enum class FormatKind { SignedInteger, UnsignedInteger, Float, Bipolar };

/// What codes with special meaning a float format has.
enum class SpecialValues {
  /// Every code is a finite number.
  None,
  /// All exponent and mantissa bits set is NaN, and there is no infinity: OCP's
  /// "FN" form, of f8e4m3.
  NanOnly,
  /// The top exponent holds infinities and NaNs, as in IEEE 754: f8e5m2,
  /// f8e3m4, f16, bf16, f32.
  IEEE
};

/// A scalar format; made by its factories, so that an invalid one cannot be.
struct ScalarFormat {
  /// Formats of at most this many bits have codes.
  static constexpr int maxCodeBits = 8;

  FormatKind kind;
  int bits;
  /// Zero unless the kind is Float.
  int exponentBits;
  int mantissaBits;
  SpecialValues specials;

  //===--------------------------------------------------------------------===//
  // Construction
  //===--------------------------------------------------------------------===//

  /// The integer or bipolar format of 1 to 8 bits; fails for other widths and
  /// for the kind Float.
  static Result<ScalarFormat> integer(FormatKind kind, int64_t bits);
  /// int16, uint16, int32 and uint32.
  static std::vector<ScalarFormat> wideIntegers();
  /// The float with a sign, `exponentBits` >= 1 and `mantissaBits` >= 0, 3 to 8
  /// bits in all; fails otherwise.
  static Result<ScalarFormat> floatingPoint(int64_t exponentBits,
                                            int64_t mantissaBits);
  static ScalarFormat f16();
  static ScalarFormat bf16();
  static ScalarFormat f32();

  /// The format with this name: int6, uint32, bipolar2, f6e3m2, f16, bf16, f32;
  /// also float6_e3m2, float16, bfloat16, float32. Fails with what is allowed.
  static Result<ScalarFormat> parse(std::string_view name);

  /// Every format: integers, bipolar, floats by bits and exponent bits, the
  /// wide integers, and f16, bf16, f32.
  static std::vector<ScalarFormat> all();

  //===--------------------------------------------------------------------===//
  // Queries
  //===--------------------------------------------------------------------===//

  /// The name that `parse` reads back, in its short form.
  std::string name() const;
  bool isFloat() const { return kind == FormatKind::Float; }
  /// True for int{B} and uint{B}.
  bool isInteger() const {
    return kind == FormatKind::SignedInteger ||
           kind == FormatKind::UnsignedInteger;
  }
  /// True when negative numbers have codes.
  bool isSigned() const { return kind != FormatKind::UnsignedInteger; }
  bool hasCodes() const { return bits <= maxCodeBits; }
  /// 2^(X-1) - 1. Requires: a float.
  int exponentBias() const { return (1 << (exponentBits - 1)) - 1; }
  /// The smallest and the largest finite value.
  double min() const;
  double max() const;

  /// The value of a code, exactly; infinities and NaN where the format has
  /// them. Requires: `hasCodes()` and `code` < 2^bits.
  double decode(uint8_t code) const;

  /// The code of the nearest value, of two equally near ones the even code.
  /// Values beyond the range, infinities too, become the largest finite value
  /// of their sign; a float keeps the sign of zero, also of numbers that round
  /// to it. Fails for NaN. Requires: `hasCodes()`.
  Result<uint8_t> encode(double value) const;

  bool operator==(const ScalarFormat &other) const {
    return kind == other.kind && bits == other.bits &&
           exponentBits == other.exponentBits;
  }
  bool operator!=(const ScalarFormat &other) const { return !(*this == other); }

private:
  /// The code without its sign bit of the largest finite value.
  uint32_t maxMagnitude() const;
  /// The value of a code without its sign bit. Requires: a float, and a finite
  /// code.
  double magnitudeValue(uint32_t magnitude) const;
  // Encodings of a number that is not NaN and, but for floats, in range.
  uint8_t encodeFloat(double value) const;
  uint8_t encodeInteger(double value) const;
  uint8_t encodeBipolar(double value) const;
};

} // namespace lowlp

#endif // LOWLP_NUMERIC_SCALARFORMAT_H
