//===- CodeFormat.h - What the bits of a stored code are --------*- C++ -*-===//
//
// What decoding needs to know of a code, and no more: whether its bits are a
// number, the fields of a float, or an index. Types that differ by a constant
// share one format, as the constant folds into zero points and scales:
//
//   int{b}      integers; a signed code is stored with its sign bit turned
//   over,
//               so that what is stored counts from 0: int6, uint6 and bipolar6
//   e{X}m{Y}    sign, X bits of exponent, Y bits of mantissa
//   lut{b}      an index of a table, of up to 16 bits
//   vec{v}-{r}x{b}  r codes of up to 16 bits, which stand for v weights side by
//               side along K
//   vec{v}-{r}x{b}+1  the same of codes of b bits that are spread: each has a
//   bit
//               more
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_DECODE_CODEFORMAT_H
#define LOWLP_DECODE_CODEFORMAT_H

#include "lowlp/Decode/FragmentFamily.h"
#include "lowlp/Numeric/ScalarFormat.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lowlp {

struct CodecField;
struct CodecVectors;

struct CodeFormat {
  static constexpr int maxBits = 16;
  enum class Kind { Integer, Float, Table, Vectors };
  Kind kind;
  int bits;
  /// Zero unless the kind is Float.
  int exponentBits = 0;
  int mantissaBits = 0;
  /// Weights of a row that the codes of a place stand for, and how many codes
  /// these are: 1 unless the kind is Vectors.
  int vector = 1;
  int codes = 1;
  /// Of `bits`, those that no entry needs.
  int spare = 0;

  /// The format of the stored codes of a scalar type of 1 to 8 bits.
  static Result<CodeFormat> of(const ScalarFormat &scalar);
  /// Indices of 1 to 16 bits.
  static Result<CodeFormat> table(int bits);
  /// The format of the stored codes of a codec's field.
  static CodeFormat of(const CodecField &field);
  /// The indices of books of vectors; those of books of several widths byte by
  /// byte.
  static CodeFormat vectors(const CodecVectors &vectors);
  /// Reads int6, e3m2, lut4, vec8-2x8, vec8-2x12+1.
  static Result<CodeFormat> parse(std::string_view name);
  std::string name() const;

  /// What a decoded stored code is: the code itself for integers and indices,
  /// the number for floats; none for codes that mean NaN or infinity.
  std::optional<double> value(uint16_t stored) const;
  /// Bytes of a code in a matrix of codes: 1, or 2 for more than 8 bits.
  int getCodeBytes() const { return bits > 8 ? 2 : 1; }
  /// Bits of the unsigned integers as which tiles hold indices. Codes of
  /// vectors that fill no halves of registers have one each, as lookups take
  /// them.
  int getHeldBits() const {
    if (bits <= 8)
      return bits;
    return kind == Kind::Vectors && bits < maxBits ? 32 : 16;
  }

  bool operator==(const CodeFormat &other) const {
    return kind == other.kind && bits == other.bits &&
           exponentBits == other.exponentBits && vector == other.vector &&
           codes == other.codes && spare == other.spare;
  }
  bool operator!=(const CodeFormat &other) const { return !(*this == other); }
};

/// What is stored of a code: signed integers with the sign bit turned over.
/// Its own inverse.
uint8_t toStoredCode(const ScalarFormat &scalar, uint8_t code);

/// How the value of a scalar code follows from that of the stored one:
/// `factor * value(stored) + shift`.
struct StoredValue {
  double factor;
  double shift;
};
StoredValue getStoredValue(const ScalarFormat &scalar);

} // namespace lowlp

#endif // LOWLP_DECODE_CODEFORMAT_H
