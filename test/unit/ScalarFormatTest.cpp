//===- ScalarFormatTest.cpp - Formats, over all codes ---------------------===//

#include "lowlp/Numeric/ScalarFormat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

using namespace lowlp;

static constexpr double inf = std::numeric_limits<double>::infinity();

static ScalarFormat format(const std::string &name) {
  Result<ScalarFormat> format = ScalarFormat::parse(name);
  EXPECT_TRUE(format) << format.error();
  return *format;
}

static std::vector<ScalarFormat> formatsWithCodes() {
  std::vector<ScalarFormat> formats = ScalarFormat::all();
  formats.erase(
      std::remove_if(formats.begin(), formats.end(),
                     [](const ScalarFormat &f) { return !f.hasCodes(); }),
      formats.end());
  return formats;
}

/// The finite values of a format with their codes, ascending. Of the two zeros
/// of a float only +0 is there.
static std::vector<std::pair<double, int>> finiteValues(const ScalarFormat &f) {
  std::vector<std::pair<double, int>> values;
  for (int code = 0; code < 1 << f.bits; ++code) {
    double value = f.decode(code);
    bool isNegativeZero = value == 0 && std::signbit(value);
    if (std::isfinite(value) && !isNegativeZero)
      values.push_back({value, code});
  }
  std::sort(values.begin(), values.end());
  return values;
}

TEST(ScalarFormat, ThereAreAll) {
  // 8 widths of three kinds; floats of b bits with 1 to b - 1 exponent bits:
  // 2 + 3 + ... + 7 = 27; four wide integers and three wide floats.
  std::vector<ScalarFormat> formats = ScalarFormat::all();
  EXPECT_EQ(formats.size(), 3 * 8 + 27 + 7u);
  std::set<std::string> names;
  for (const ScalarFormat &f : formats) {
    names.insert(f.name());
    EXPECT_EQ(format(f.name()), f);
  }
  EXPECT_EQ(names.size(), formats.size());
}

TEST(ScalarFormat, DecodesByHand) {
  // f4e2m1 has bias 1: exponent field 0 holds 0 and 1/2 * 2^0.
  const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int code = 0; code < 8; ++code) {
    EXPECT_EQ(format("f4e2m1").decode(code), e2m1[code]);
    EXPECT_EQ(format("f4e2m1").decode(code | 8), -e2m1[code]);
  }
  // f3e1m1 has bias 0: subnormals m/2 * 2^1, normals (1 + m/2) * 2^1.
  const double e1m1[] = {0, 1, 2, 3};
  for (int code = 0; code < 4; ++code)
    EXPECT_EQ(format("f3e1m1").decode(code), e1m1[code]);
  // f3e2m0 has bias 1 and no mantissa: 0 and powers of two.
  const double e2m0[] = {0, 1, 2, 4};
  for (int code = 0; code < 4; ++code)
    EXPECT_EQ(format("f3e2m0").decode(code), e2m0[code]);
  EXPECT_EQ(format("int1").decode(1), -1);
  EXPECT_EQ(format("int3").decode(4), -4);
  EXPECT_EQ(format("uint3").decode(4), 4);
  // Bits 0 and 2 set: 1 - 2 + 4.
  EXPECT_EQ(format("bipolar3").decode(5), 3);
}

TEST(ScalarFormat, Ranges) {
  struct Range {
    const char *name;
    double min, max;
  };
  for (auto [name, min, max] : {
           Range{"int1", -1, 0},
           {"int8", -128, 127},
           {"uint1", 0, 1},
           {"uint8", 0, 255},
           {"bipolar1", -1, 1},
           {"bipolar8", -255, 255},
           {"f8e4m3", -448, 448},
           {"f8e5m2", -57344, 57344},
           {"f8e3m4", -15.5, 15.5},
           {"f6e3m2", -28, 28},
           {"f6e2m3", -7.5, 7.5},
           {"f4e2m1", -6, 6},
           {"f16", -65504, 65504},
           {"f32", -std::numeric_limits<float>::max(),
            std::numeric_limits<float>::max()},
           {"bf16", -std::ldexp(255, 120), std::ldexp(255, 120)},
       }) {
    EXPECT_EQ(format(name).min(), min) << name;
    EXPECT_EQ(format(name).max(), max) << name;
  }
}

TEST(ScalarFormat, SpecialCodes) {
  EXPECT_TRUE(std::isnan(format("f8e4m3").decode(0x7f)));
  EXPECT_TRUE(std::isnan(format("f8e4m3").decode(0xff)));
  EXPECT_EQ(format("f8e4m3").decode(0x7e), 448);
  EXPECT_EQ(format("f8e5m2").decode(0x7c), inf);
  EXPECT_EQ(format("f8e5m2").decode(0xfc), -inf);
  EXPECT_TRUE(std::isnan(format("f8e5m2").decode(0x7d)));
  EXPECT_EQ(format("f8e3m4").decode(0x70), inf);
  for (const ScalarFormat &f : formatsWithCodes()) {
    if (f.specials != SpecialValues::None)
      continue;
    for (int code = 0; code < 1 << f.bits; ++code)
      EXPECT_TRUE(std::isfinite(f.decode(code))) << f.name() << " " << code;
  }
}

TEST(ScalarFormat, EncodeUndoesDecode) {
  for (const ScalarFormat &f : formatsWithCodes())
    for (int code = 0; code < 1 << f.bits; ++code)
      if (std::isfinite(f.decode(code))) {
        EXPECT_EQ(*f.encode(f.decode(code)), code) << f.name();
      }
}

TEST(ScalarFormat, MinAndMaxAreTheFirstAndLastValue) {
  for (const ScalarFormat &f : formatsWithCodes()) {
    EXPECT_EQ(finiteValues(f).front().first, f.min()) << f.name();
    EXPECT_EQ(finiteValues(f).back().first, f.max()) << f.name();
  }
}

TEST(ScalarFormat, CodesAscendWithValues) {
  for (const ScalarFormat &f : formatsWithCodes()) {
    // Codes that are not negative, in order.
    int numCodes = 1 << f.bits;
    bool signBit = f.isFloat() || f.kind == FormatKind::SignedInteger;
    for (int code = 1; code < (signBit ? numCodes / 2 : numCodes); ++code)
      if (std::isfinite(f.decode(code))) {
        EXPECT_GT(f.decode(code), f.decode(code - 1)) << f.name();
      }
    // And no two codes share a value, but for the zeros.
    std::vector<std::pair<double, int>> values = finiteValues(f);
    for (size_t k = 1; k < values.size(); ++k)
      EXPECT_LT(values[k - 1].first, values[k].first) << f.name();
  }
}

TEST(ScalarFormat, MidpointsGoToTheEvenCode) {
  for (const ScalarFormat &f : formatsWithCodes()) {
    std::vector<std::pair<double, int>> values = finiteValues(f);
    for (size_t k = 1; k < values.size(); ++k) {
      auto [low, lowCode] = values[k - 1];
      auto [high, highCode] = values[k];
      double middle = (low + high) / 2;
      // Below +0 stands -0, whose code has the parity of +0.
      int even = lowCode % 2 == 0 ? lowCode : highCode;
      if (f.isFloat() && high == 0)
        highCode = 1 << (f.bits - 1);
      if (f.isFloat() && high == 0 && even == 0)
        even = highCode;
      EXPECT_EQ(*f.encode(middle), even) << f.name() << " " << middle;
      EXPECT_EQ(*f.encode(std::nextafter(middle, -inf)), lowCode) << f.name();
      EXPECT_EQ(*f.encode(std::nextafter(middle, inf)), highCode) << f.name();
    }
  }
}

TEST(ScalarFormat, EncodeFindsTheNearest) {
  std::mt19937 random(1);
  for (const ScalarFormat &f : formatsWithCodes()) {
    std::vector<std::pair<double, int>> values = finiteValues(f);
    for (int sample = 0; sample < 300; ++sample) {
      double unit = static_cast<double>(random()) / 4294967296.0;
      double value = f.min() + unit * (f.max() - f.min());
      if (sample % 2)
        value = std::ldexp(value, -static_cast<int>(random() % 12));
      double best = inf;
      for (auto [candidate, code] : values)
        best = std::min(best, std::fabs(candidate - value));
      EXPECT_EQ(std::fabs(f.decode(*f.encode(value)) - value), best)
          << f.name() << " " << value;
    }
  }
}

TEST(ScalarFormat, EncodeSaturates) {
  for (const ScalarFormat &f : formatsWithCodes())
    for (double factor : {1.0001, 1.5, 1e30, inf}) {
      double beyond = std::max({f.max(), -f.min(), 1.0}) * factor;
      EXPECT_EQ(f.decode(*f.encode(beyond)), f.max()) << f.name();
      EXPECT_EQ(f.decode(*f.encode(-beyond)), f.min()) << f.name();
    }
}

TEST(ScalarFormat, EncodeKeepsTheSignOfZero) {
  for (const ScalarFormat &f : formatsWithCodes()) {
    if (!f.isFloat())
      continue;
    EXPECT_EQ(*f.encode(0.0), 0);
    EXPECT_EQ(*f.encode(-0.0), 1 << (f.bits - 1));
    EXPECT_EQ(*f.encode(-5e-324), 1 << (f.bits - 1));
  }
}

TEST(ScalarFormat, RefusesNaN) {
  EXPECT_EQ(format("f4e2m1").encode(std::nan("")).error(),
            "NaN has no code in f4e2m1");
  EXPECT_FALSE(format("int4").encode(std::nan("")));
  EXPECT_FALSE(format("f8e5m2").encode(std::nan("")));
}

TEST(ScalarFormat, ParsesAliases) {
  EXPECT_EQ(format("float6_e3m2"), format("f6e3m2"));
  EXPECT_EQ(format("float16"), ScalarFormat::f16());
  EXPECT_EQ(format("bfloat16"), ScalarFormat::bf16());
  EXPECT_EQ(format("float32"), ScalarFormat::f32());
}

TEST(ScalarFormat, RefusesOtherNames) {
  for (const char *name :
       {"",       "int",  "int0",    "int9", "int04",      "uint10",   "int17",
        "int64",  "Int4", "int4 ",   "f6",   "f6e3m3",     "f9e4m4",   "f4e0m3",
        "f2e1m0", "f6e3", "f6_e3m2", "f64",  "float6e3m2", "bipolar9", "e3m2"})
    EXPECT_EQ(
        ScalarFormat::parse(name).error().rfind(
            "there is no type '" + std::string(name) + "'; allowed are ", 0),
        0u)
        << name;
}

TEST(ScalarFormat, RefusesOtherWidths) {
  EXPECT_EQ(ScalarFormat::integer(FormatKind::SignedInteger, 9).error(),
            "an integer has 1 to 8 bits; found 9");
  EXPECT_EQ(ScalarFormat::integer(FormatKind::Float, 4).error(),
            "a float is made of exponent and mantissa bits");
  EXPECT_EQ(ScalarFormat::floatingPoint(0, 3).error(),
            "a float has a sign, at least 1 exponent bit, and 3 to 8 bits in "
            "all; found 0 exponent and 3 mantissa bits");
}
