//===- CodeFormat.cpp - What the bits of a stored code are ----------------===//
#include "lowlp/Decode/CodeFormat.h"

#include "lowlp/Numeric/Codec.h"

#include <cmath>

using namespace lowlp;

Result<CodeFormat> CodeFormat::of(const ScalarFormat &scalar) {
  if (!scalar.hasCodes())
    return Error{"code format: " + scalar.name() +
                 " has no codes; allowed: types of 1 to 8 bits"};
  if (scalar.isFloat())
    return CodeFormat{Kind::Float, scalar.bits, scalar.exponentBits,
                      scalar.mantissaBits};
  return CodeFormat{Kind::Integer, scalar.bits};
}

Result<CodeFormat> CodeFormat::table(int bits) {
  if (bits < 1 || bits > maxBits)
    return Error{"code format: a table's codes have 1 to 16 bits, got " +
                 std::to_string(bits)};
  return CodeFormat{Kind::Table, bits};
}

CodeFormat CodeFormat::vectors(const CodecVectors &vectors) {
  CodeFormat format = {Kind::Vectors, vectors.bits};
  format.vector = vectors.vector;
  format.codes = vectors.books;
  format.spare = vectors.getStoredBits() - vectors.bits;
  format.bits += format.spare;
  int allBits = 0;
  for (int book = 0; book < vectors.books; ++book)
    allBits += vectors.getBits(book);
  if (allBits != vectors.bits * vectors.books) {
    format.bits = 8;
    format.codes = allBits / 8;
  }
  return format;
}

CodeFormat CodeFormat::of(const CodecField &field) {
  if (field.vectors)
    return vectors(*field.vectors);
  return field.number ? *of(*field.number) : *table(field.table->bits);
}

std::string CodeFormat::name() const {
  switch (kind) {
  case Kind::Integer:
    return "int" + std::to_string(bits);
  case Kind::Float:
    return "e" + std::to_string(exponentBits) + "m" +
           std::to_string(mantissaBits);
  case Kind::Table:
    return "lut" + std::to_string(bits);
  case Kind::Vectors:
    return "vec" + std::to_string(vector) + "-" + std::to_string(codes) + "x" +
           std::to_string(bits - spare) +
           (spare ? "+" + std::to_string(spare) : "");
  }
  return {};
}

static std::optional<CodeFormat> parseVectors(std::string_view name) {
  if (name.substr(0, 3) != "vec")
    return std::nullopt;
  for (int vector : {2, 4, 8, 16})
    for (int codes = 1; codes <= CodecVectors::maxBooks; ++codes)
      for (int bits = 1; bits <= CodeFormat::maxBits; ++bits)
        for (int spare : {0, 1}) {
          CodeFormat format{CodeFormat::Kind::Vectors, bits};
          format.vector = vector, format.codes = codes, format.spare = spare;
          if (bits > spare && format.name() == name)
            return format;
        }
  return std::nullopt;
}

Result<CodeFormat> CodeFormat::parse(std::string_view name) {
  for (int bits = 1; bits <= ScalarFormat::maxCodeBits; ++bits) {
    for (Kind kind : {Kind::Integer, Kind::Table})
      if (CodeFormat format{kind, bits}; format.name() == name)
        return format;
    for (int exponent = 1; exponent < bits; ++exponent)
      if (CodeFormat format{Kind::Float, bits, exponent, bits - 1 - exponent};
          bits >= 3 && format.name() == name)
        return format;
  }
  for (int bits = ScalarFormat::maxCodeBits + 1; bits <= maxBits; ++bits)
    if (CodeFormat format{Kind::Table, bits}; format.name() == name)
      return format;
  if (std::optional<CodeFormat> format = parseVectors(name))
    return *format;
  return Error{"code format: expected int{b} or e{X}m{Y} of at most 8 bits, "
               "lut{b} or vec{v}-{r}x{b} of at most 16, got '" +
               std::string(name) + "'"};
}

std::optional<double> CodeFormat::value(uint16_t stored) const {
  if (kind != Kind::Float)
    return stored;
  double value = ScalarFormat::floatingPoint(exponentBits, mantissaBits)
                     ->decode(static_cast<uint8_t>(stored));
  if (!std::isfinite(value))
    return std::nullopt;
  return value;
}

uint8_t lowlp::toStoredCode(const ScalarFormat &scalar, uint8_t code) {
  if (scalar.kind != FormatKind::SignedInteger)
    return code;
  return static_cast<uint8_t>(code ^ (1u << (scalar.bits - 1)));
}

StoredValue lowlp::getStoredValue(const ScalarFormat &scalar) {
  double half = std::ldexp(1.0, scalar.bits - 1);
  switch (scalar.kind) {
  case FormatKind::SignedInteger:
    return {1, -half};
  case FormatKind::Bipolar:
    return {2, 1 - 2 * half};
  case FormatKind::UnsignedInteger:
  case FormatKind::Float:
    return {1, 0};
  }
  return {1, 0};
}
