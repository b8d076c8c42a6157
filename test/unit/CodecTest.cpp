//===- CodecTest.cpp - Codecs: text, equality and what is refused ---------===//
#include "lowlp/Numeric/Codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace lowlp;

static Codec codec(const std::string &text) {
  Result<Codec> parsed = Codec::parse(text);
  EXPECT_TRUE(parsed) << parsed.error();
  return *parsed;
}

static const char *const kTexts[] = {
    "int6",
    "lut9:f16:tensor",
    "int6 g128 f16",
    "uint4 channel bf16 zeros:uint8",
    "uint3 tensor f16 offsets:f32",
    "f4e2m1 g16 e4m3 scale2",
    "int6 g16 int8 super:f16:g256",
    "uint3 g16 int6 super:f16:g256",
    "uint2 g16 uint4 offsets:uint4 super:f16:g256",
    "uint4 g128 uint8 zeros:uint8 super:bf16:channel",
    "uint4 g32 uint8 offsets:f16 super:f32:g64",
    "bipolar2 g32 e8m0",
    "lut2:f32[-1, 0, 0.33333334, 1e-30] g64 f16",
    "lut16:f16:group g64 f32",
    "lut3:f16:channel channel f16"};

TEST(Codec, TextIsReadBack) {
  for (const char *text : kTexts)
    EXPECT_EQ(codec(text).str(), text);
}

TEST(Codec, IsEqualAndHashedByItsFields) {
  for (const char *one : kTexts)
    for (const char *other : kTexts) {
      EXPECT_EQ(codec(one) == codec(other), one == other);
      EXPECT_EQ(codec(one).hash() == codec(other).hash(), one == other);
    }
}

TEST(Codec, FieldsOfAText) {
  Codec found = codec("uint4 g32 e4m3 zeros:int8 scale2");
  EXPECT_EQ(found.getBits(), 4);
  EXPECT_EQ(found.getField().number->name(), "uint4");
  EXPECT_EQ(found.getGroup(), CodecGroup::of(32));
  EXPECT_EQ(found.getScale(), PartType::E4M3);
  EXPECT_EQ(found.getZeros(), PartType::Int8);
  EXPECT_EQ(found.getOffsets(), std::nullopt);
  EXPECT_EQ(found.getScaleLevels(), 2);
  EXPECT_EQ(codec("int4 g32 f16").getScaleLevels(), 1);
  EXPECT_EQ(codec("int4").getScaleLevels(), 0);
}

TEST(Codec, SuperScales) {
  Codec found = codec("uint4 g32 uint8 offsets:int8 super:f32:g256");
  EXPECT_EQ(found.getScaleLevels(), 2);
  EXPECT_EQ(found.getScale(), PartType::UInt8);
  EXPECT_EQ(found.getOffsets(), PartType::Int8);
  EXPECT_EQ(found.getSuper(), (CodecSuper{PartType::F32, CodecGroup::of(256)}));
  EXPECT_EQ(found.forKernel(192).str(),
            "uint4 g32 uint8 offsets:int8 super:f32:channel");
}

// Signed powers of two in 4 bits, +-2^0 .. +-2^-7, are a codec by their
// entries.
TEST(Codec, NewCodecIsData) {
  std::vector<float> entries;
  for (int code = 0; code < 16; ++code)
    entries.push_back(std::ldexp(code < 8 ? 1.0f : -1.0f, -(code % 8)));
  Codec made = *Codec::create(
      CodecField::of(*CodecTable::create(4, "f16", "tensor", entries)),
      CodecGroup::of(128), {});
  EXPECT_EQ(codec(made.str()), made);
  EXPECT_EQ(made.str("lut4:f16:powers"), "lut4:f16:powers g128 f16");
  EXPECT_EQ(made.forKernel(4096).str(), "lut4:f32:tensor g128 f16");
}

TEST(Codec, EqualTablesHaveOneForm) {
  EXPECT_EQ(codec("lut1:f32[-0, 1] g4 f16"), codec("lut1:f32[0, 1] g4 f16"));
  EXPECT_NE(codec("lut1:f32[0, 1] g4 f16"), codec("lut1:f16[0, 1] g4 f16"));
}

TEST(Codec, FormForAKernel) {
  EXPECT_EQ(codec("int4 tensor f16").forKernel(64).str(), "int4 channel f16");
  EXPECT_EQ(codec("int4 g64 f16").forKernel(64).str(), "int4 channel f16");
  EXPECT_EQ(codec("int4 g64 f16").forKernel(128).str(), "int4 g64 f16");
  EXPECT_EQ(codec("lut2:f16:group g64 f16").forKernel(128).str(),
            "lut2:f32:group g64 f16");
}

TEST(Codec, SaysWhatIsRefused) {
  const std::pair<const char *, const char *> refused[] = {
      {"planes2 g64 f16", "codec: fields of planes are reserved; bipolar{b} is "
                          "the type whose bits are signs"},
      {"f16 g64 f16", "codec: dtype: f16 has 16 bits; a code has 1..8"},
      {"int4 g0 f16", "codec: group: must be a positive int, 'channel' or "
                      "'tensor', got 0"},
      {"int4 row f16", "codec: group: must be a positive int, 'channel' or "
                       "'tensor', got 'row'"},
      {"int4 g64 f64",
       "codec: scale: must be one of f16, bf16, f32, e8m0, e4m3, got 'f64'"},
      {"int4 g64 f16 zeros:int32", "codec: zeros: must be one of int8, uint8, "
                                   "int16, f16, bf16, f32, got 'int32'"},
      {"int4 g64 f16 offsets:int8",
       "codec: offsets: must be one of f16, bf16, f32, got 'int8'"},
      {"int4 g64 f16 zeros:f16 offsets:f16",
       "codec: zeros, offsets: at most one of them may be given, got both"},
      {"int4 g64 f16 offsets:f16 scale2",
       "codec: scale2, offsets: at most one of them may be given, got both"},
      {"lut2:f16:group g64 f16 zeros:int8",
       "codec: zeros: allowed for integer types only, got dtype 2-bit table; "
       "use offsets"},
      {"f4e2m1 g64 f16 zeros:int8", "codec: zeros: allowed for integer types "
                                    "only, got dtype f4e2m1; use offsets"},
      {"int4 g64 f16 and",
       "codec: expected 'int4 g128 f16', then zeros:TYPE or offsets:TYPE, "
       "super:TYPE:GROUP and scale2 as there are any, got 'int4 g64 f16 and'"},
      {"int4 g64 uint8",
       "codec: scale: must be one of f16, bf16, f32, e8m0, e4m3, got 'uint8'"},
      {"int4 g64 f16 super:f16:g256",
       "codec: scale, with super_scales: must "
       "be one of uint4, int6, uint8, int8, got 'f16'"},
      {"uint4 g32 uint8 offsets:uint4 super:f16:g64",
       "codec: offsets, with scales of uint8: must be one of f16, bf16, f32, "
       "uint8, int8, got 'uint4'"},
      {"uint4 g32 uint4 offsets:uint8 super:f16:g64",
       "codec: offsets, with scales of uint4: must be one of f16, bf16, f32, "
       "uint4, got 'uint8'"},
      {"uint4 g32 int6 offsets:uint4 super:f16:g64",
       "codec: offsets, with scales of int6: must be one of f16, bf16, f32, "
       "int6, got 'uint4'"},
      {"int4 g64 int8 super:int8:g256",
       "codec: super_scales: must be one of f16, bf16, f32, got 'int8'"},
      {"int4 g64 int8 super:f16", "codec: super_group: must be a positive int, "
                                  "'channel' or 'tensor', got ''"},
      {"int4 g64 int8 super:f16:g96",
       "codec: super_group: must be a multiple of the group, or 'channel', got "
       "g96 over g64"},
      {"int4 tensor int8 super:f16:channel",
       "codec: super_scales: expected groups of rows, got one group for the "
       "whole tensor"},
      {"int4 g64 int8 super:f16:g64 scale2",
       "codec: scale2, super_scales: at most one of them may be given, got "
       "both"},
      {"lut0:f16:group", "codec: bits: must be in 1..16, got 0"},
      {"lut2:bf16:group",
       "codec: element: must be one of f16, f32, got 'bf16'"},
      {"lut2:f16:row",
       "codec: scope: must be one of tensor, channel, group, got 'row'"},
      {"lut2:f16[1, 2]", "codec: entries: expected 4 of 2 bits, got 2"},
      {"lut1:f16[1, x]", "codec: expected a table such as lut4:f32:tensor or "
                         "lut1:f16[-1, 1], got 'lut1:f16[1, x]'"},
      {"lut1:f16[1, inf]", "codec: entries: must be finite"}};
  for (auto [text, message] : refused) {
    Result<Codec> parsed = Codec::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error(), message);
  }
  EXPECT_EQ(CodecTable::create(1, "f16", "group", {{0, 1}}).error(),
            "entries: given for the scope 'tensor' only, got the scope "
            "'group'");
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

TEST(CodecVectors, TextIsReadBack) {
  for (const char *text :
       {"vec8:2x8:f16", "vec8:1x16:bf16 channel bf16", "vec16:4x1:f8e4m3",
        "vec4:1x8:int8:256x256 g128 f32", "vec2:1x8:f16:1x2 tensor f16",
        "vec8:1x8:f16:1x*x* channel f16", "e8p channel f16",
        "e8p+e81b channel f16", "e8p+e8p"})
    EXPECT_EQ(codec(text).str(), text);
  CodecVectors vectors = *codec("vec4:3x10:int8:256x*").getField().vectors;
  EXPECT_EQ(vectors.vector, 4);
  EXPECT_EQ(vectors.books, 3);
  EXPECT_EQ(vectors.bits, 10);
  EXPECT_EQ(vectors.block, (std::vector<int64_t>{256, 0}));
  EXPECT_TRUE(vectors.hasBookScales());
  EXPECT_EQ(codec("vec4:1x8:f16").getField().getValuesPerCode(), 4);
  EXPECT_EQ(codec("e8p+e81b").getField().vectors->getBits(1), 8);
}

// What is taken whole in front says nothing: equal codecs have one text.
TEST(CodecVectors, WholeAxesInFrontAreLeftOut) {
  EXPECT_EQ(CodecVectors::create(2, 8, 1, "f16", {0, 1, 2})->str(),
            "vec2:1x8:f16:1x2");
  EXPECT_EQ(CodecVectors::create(2, 8, 1, "f16", {0, 0})->str(),
            "vec2:1x8:f16");
}

TEST(CodecVectors, FormForAKernel) {
  EXPECT_EQ(codec("vec4:1x8:f16:256x256 g256 f16").forKernel(256).str(),
            "vec4:1x8:f16:256x* channel f16");
  EXPECT_EQ(codec("vec4:1x8:f16:256 g256 f16").forKernel(200).str(),
            "vec4:1x8:f16 g256 f16");
}

TEST(CodecVectors, SaysWhatIsRefused) {
  const std::pair<const char *, const char *> refused[] = {
      {"vec3:2x8:f16", "codec: vector: must be one of 2, 4, 8, 16, got 3"},
      {"vec8:2x17:f16", "codec: bits: must be in 1..16, got 17"},
      {"vec8:5x8:f16", "codec: books: must be in 1..4, got 5"},
      {"vec8:2x8:f32",
       "codec: entries: must be one of f16, bf16, int8, f8e4m3, got 'f32'"},
      {"vec8:2x8:f16:256x12",
       "codec: book_per: the last extent must be a multiple of vector = 8, got "
       "12"},
      {"vec8:2x8:f16:1x2x3x8",
       "codec: book_per: expected at most 3 extents, got 4"},
      {"vec8:2x8:f16:-8", "codec: book_per: extents must be at least 1, or 0 "
                          "for all of an axis, got -8"},
      {"vec8:2x8", "codec: expected vectors such as vec8:2x8:f16 or "
                   "vec4:1x8:f16:256x256, got 'vec8:2x8'"},
      {"vec8:2x8:f16:*x8", "codec: expected vectors such as vec8:2x8:f16 or "
                           "vec4:1x8:f16:256x256, got 'vec8:2x8:f16:*x8'"},
      {"e8p+e9", "codec: lattice: must be one of e8p, e81b, got 'e9'"},
      {"e81b", "codec: lattice: must be e8p, e8p+e81b or e8p+e8p, got e81b"},
      {"vec8:2x8:f16 g12 f16",
       "codec: group: must be a multiple of the 8 weights of a code, got 12"},
      {"vec8:2x8:f16 g64 f16 zeros:int8",
       "codec: zeros: not allowed for codes of vectors, got some with "
       "vec8:2x8:f16"},
      {"vec8:2x8:f16 g64 f16 offsets:f16",
       "codec: offsets: not allowed for codes of vectors, got some with "
       "vec8:2x8:f16"},
      {"e8p g64 f16 scale2", "codec: scale2: not allowed for codes of vectors, "
                             "got some with e8p"},
      {"e8p g64 int8 super:f16:g128",
       "codec: super_scales: not allowed for codes of vectors, got some with "
       "e8p"}};
  for (auto [text, message] : refused) {
    Result<Codec> parsed = Codec::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error(), message);
  }
  EXPECT_EQ(CodecVectors::create({}).error(),
            "lattice: must be e8p, e8p+e81b or e8p+e8p, got none");
}
