//===- PackingTest.cpp - Packing by any placement, and back ---------------===//
#include "lowlp/Decode/Packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace lowlp;

namespace {
/// A placement with every bit anywhere.
Placement scatterBits(CodeFormat format, ComputeType compute, int rowTiles,
                      std::mt19937 &random) {
  std::vector<BitPlace> places;
  for (int word = 0; word < format.bits * rowTiles; ++word)
    for (int bit = 0; bit < 32; ++bit)
      places.push_back({word, bit});
  std::shuffle(places.begin(), places.end(), random);
  return *Placement::create(format, compute, rowTiles, std::move(places));
}

/// The words by the header's formulas, a weight at a time.
std::vector<uint32_t> packByPlacement(const Placement &placement,
                                      const CodeMatrix &matrix,
                                      const std::vector<uint16_t> &codes,
                                      uint8_t flip) {
  int parts = placement.getNumParts(), access = placement.getWordsPerAccess();
  std::vector<uint32_t> packed;
  for (int64_t unitN = 0; unitN < matrix.getNumUnitsN(placement); ++unitN)
    for (int64_t unitK = 0; unitK < matrix.getNumUnitsK(placement); ++unitK) {
      std::vector<std::vector<uint32_t>> lanes(
          32, std::vector<uint32_t>(placement.getNumWords()));
      for (int inN = 0; inN < placement.getUnitRows(); ++inN)
        for (int inK = 0; inK < placement.getUnitK(); ++inK) {
          int64_t row = unitN * placement.getUnitRows() + inN;
          int64_t column = unitK * placement.getUnitK() + inK;
          uint16_t code = 0;
          if (row < matrix.n && column < matrix.k)
            code = codes[row * matrix.k + column];
          int step = inK / (8 * parts), h = inK / (4 * parts) % 2;
          int slot = (inN / 16 * placement.getNumSteps() + step) * 4 +
                     inN / 8 % 2 + 2 * h;
          int lane = inN % 8 * 4 + inK / parts % 4;
          placement.insert(lanes[lane].data(), slot, inK % parts, code ^ flip);
        }
      for (int first = 0; first < placement.getNumWords(); first += access)
        for (const std::vector<uint32_t> &words : lanes)
          packed.insert(packed.end(), words.begin() + first,
                        words.begin() + first + access);
    }
  return packed;
}

struct Case {
  int bits;
  int rowTiles;
  ComputeType compute;
};

class PackingTest : public testing::TestWithParam<Case> {};

/// Packs and unpacks matrices whose codes are of this type.
template <typename Code> void checkPacking(const Case &of) {
  auto [bits, rowTiles, compute] = of;
  std::mt19937 random(bits * 8 + rowTiles);
  auto kind = bits > 8 ? CodeFormat::Kind::Table : CodeFormat::Kind::Integer;
  CodeFormat format = {kind, bits};
  uint8_t flip = bits > 8 ? 0 : static_cast<uint8_t>(1u << (bits - 1));
  const CodeMatrix matrices[] = {{1, 1},   {70, 192}, {9, 72}, {16, 80},
                                 {33, 96}, {20, 100}, {3, 66}};
  Placement scattered = scatterBits(format, compute, rowTiles, random);
  for (const Placement &placement :
       {Placement::contiguous(format, compute, rowTiles), scattered,
        scattered.withUnitK(32),
        scattered.withUnitK(std::max(16, scattered.getFamily().getStepK()))})
    for (const CodeMatrix &matrix : matrices) {
      std::vector<uint16_t> codes(matrix.n * matrix.k);
      for (uint16_t &code : codes)
        code = static_cast<uint16_t>(random() & ((1u << bits) - 1));
      std::vector<Code> held(codes.begin(), codes.end());
      std::vector<uint32_t> packed(matrix.getNumPackedWords(placement), 0xdead);
      auto rowStride = static_cast<int64_t>(matrix.k * sizeof(Code));
      Result<bool> result = packCodes(
          placement, matrix, reinterpret_cast<const uint8_t *>(held.data()),
          rowStride, flip, packed.data(), 2);
      ASSERT_TRUE(result) << result.error();
      EXPECT_EQ(packed, packByPlacement(placement, matrix, codes, flip));
      std::vector<Code> found(codes.size(), 0xee);
      unpackCodes(placement, matrix, packed.data(), flip,
                  reinterpret_cast<uint8_t *>(found.data()), rowStride, 2);
      EXPECT_EQ(found, held);
    }
}

TEST_P(PackingTest, AnyPlacementAndBack) {
  if (GetParam().bits > 8)
    checkPacking<uint16_t>(GetParam());
  else
    checkPacking<uint8_t>(GetParam());
}

std::vector<Case> getCases() {
  std::vector<Case> cases;
  for (int bits = 1; bits <= 8; ++bits)
    for (int rowTiles : {1, 2, 4})
      for (ComputeType compute : {ComputeType::F16, ComputeType::S8})
        cases.push_back({bits, rowTiles, compute});
  for (int bits = 9; bits <= 16; ++bits)
    cases.push_back({bits, 1, ComputeType::F16});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, PackingTest, testing::ValuesIn(getCases()),
                         [](const auto &info) {
                           return "int" + std::to_string(info.param.bits) +
                                  "_tiles" +
                                  std::to_string(info.param.rowTiles) + "_" +
                                  getName(info.param.compute);
                         });

// At most the last unit of a row is padded.
TEST(Packing, PadsRowsOnly) {
  const Placement &placement = **Placement::find("int4.f16");
  for (auto [k, units] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {64, 1}, {65, 2}, {96, 2}, {192, 3}, {4100, 65}})
    EXPECT_EQ((CodeMatrix{16, k}.getNumUnitsK(placement)), units);
}

TEST(Packing, SaysWhereACodeIsTooWide) {
  const Placement &placement = **Placement::find("int5.f16");
  CodeMatrix matrix = {40, 96};
  std::vector<uint8_t> codes(matrix.n * matrix.k);
  codes[39 * 96 + 95] = 32;
  std::vector<uint32_t> packed(matrix.getNumPackedWords(placement));
  Result<bool> result =
      packCodes(placement, matrix, codes.data(), 96, 0, packed.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(),
            "codes: must be in 0..31 for int5.f16, got 32 at [39, 95]");
}

TEST(Packing, SaysWhereACodeOfTwoBytesIsTooWide) {
  const Placement &placement = **Placement::find("lut12.bf16");
  CodeMatrix matrix = {2, 70};
  std::vector<uint16_t> codes(matrix.n * matrix.k);
  codes[70 + 69] = 4096;
  std::vector<uint32_t> packed(matrix.getNumPackedWords(placement));
  EXPECT_EQ(packCodes(placement, matrix,
                      reinterpret_cast<const uint8_t *>(codes.data()), 140, 0,
                      packed.data())
                .error(),
            "codes: must be in 0..4095 for lut12.bf16, got 4096 at [1, 69]");
}

TEST(Packing, RowsMayLieApart) {
  const Placement &placement = **Placement::find("int8.f16");
  CodeMatrix matrix = {17, 64};
  constexpr int64_t rowStride = 71;
  std::vector<uint8_t> apart(matrix.n * rowStride);
  std::vector<uint16_t> together;
  for (size_t i = 0; i < apart.size(); ++i)
    apart[i] = static_cast<uint8_t>(i * 7);
  for (int64_t row = 0; row < matrix.n; ++row)
    together.insert(together.end(), apart.begin() + row * rowStride,
                    apart.begin() + row * rowStride + matrix.k);
  std::vector<uint32_t> packed(matrix.getNumPackedWords(placement));
  ASSERT_TRUE(
      packCodes(placement, matrix, apart.data(), rowStride, 0, packed.data()));
  EXPECT_EQ(packed, packByPlacement(placement, matrix, together, 0));
  std::vector<uint8_t> found = apart;
  for (int64_t row = 0; row < matrix.n; ++row)
    std::fill_n(found.begin() + row * rowStride, matrix.k, 0);
  unpackCodes(placement, matrix, packed.data(), 0, found.data(), rowStride);
  EXPECT_EQ(found, apart);
}
} // namespace
