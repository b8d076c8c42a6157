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
                                      const std::vector<uint8_t> &codes,
                                      uint8_t flip) {
  int parts = placement.getNumParts(), access = placement.getWordsPerAccess();
  int64_t paddedGroup = matrix.getPaddedGroup();
  std::vector<uint32_t> packed;
  for (int64_t unitN = 0; unitN < matrix.getNumUnitsN(placement); ++unitN)
    for (int64_t unitK = 0; unitK < matrix.getNumUnitsK(); ++unitK) {
      std::vector<std::vector<uint32_t>> lanes(
          32, std::vector<uint32_t>(placement.getNumWords()));
      for (int inN = 0; inN < placement.getUnitRows(); ++inN)
        for (int inK = 0; inK < 64; ++inK) {
          int64_t row = unitN * placement.getUnitRows() + inN;
          int64_t group = (unitK * 64 + inK) / paddedGroup;
          int64_t inGroup = (unitK * 64 + inK) % paddedGroup;
          uint8_t code = 0;
          if (row < matrix.n && group < matrix.k / matrix.groupSize &&
              inGroup < matrix.groupSize)
            code = codes[row * matrix.k + group * matrix.groupSize + inGroup];
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

TEST_P(PackingTest, AnyPlacementAndBack) {
  auto [bits, rowTiles, compute] = GetParam();
  std::mt19937 random(bits * 8 + rowTiles);
  CodeFormat format = {CodeFormat::Kind::Integer, bits};
  uint8_t flip = static_cast<uint8_t>(1u << (bits - 1));
  const CodeMatrix matrices[] = {{1, 1, 1},      {70, 192, 64}, {9, 72, 24},
                                 {16, 80, 16},   {33, 96, 48},  {65, 192, 96},
                                 {20, 100, 100}, {3, 66, 22}};
  for (const Placement &placement :
       {Placement::contiguous(format, compute, rowTiles),
        scatterBits(format, compute, rowTiles, random)})
    for (const CodeMatrix &matrix : matrices) {
      std::vector<uint8_t> codes(matrix.n * matrix.k);
      for (uint8_t &code : codes)
        code = static_cast<uint8_t>(random() & ((1u << bits) - 1));
      std::vector<uint32_t> packed(matrix.getNumPackedWords(placement), 0xdead);
      Result<bool> result = packCodes(placement, matrix, codes.data(), matrix.k,
                                      flip, packed.data(), 2);
      ASSERT_TRUE(result) << result.error();
      EXPECT_EQ(packed, packByPlacement(placement, matrix, codes, flip));
      std::vector<uint8_t> found(codes.size(), 0xee);
      unpackCodes(placement, matrix, packed.data(), flip, found.data(),
                  matrix.k, 2);
      EXPECT_EQ(found, codes);
    }
}

std::vector<Case> getCases() {
  std::vector<Case> cases;
  for (int bits = 1; bits <= 8; ++bits)
    for (int rowTiles : {1, 2, 4})
      for (ComputeType compute : {ComputeType::F16, ComputeType::S8})
        cases.push_back({bits, rowTiles, compute});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, PackingTest, testing::ValuesIn(getCases()),
                         [](const auto &info) {
                           return "int" + std::to_string(info.param.bits) +
                                  "_tiles" +
                                  std::to_string(info.param.rowTiles) + "_" +
                                  getName(info.param.compute);
                         });

TEST(Packing, PadsGroups) {
  for (auto [groupSize, padded] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 16},
                                                {16, 16},
                                                {17, 32},
                                                {32, 32},
                                                {33, 64},
                                                {64, 64},
                                                {65, 128},
                                                {128, 128},
                                                {4096, 4096},
                                                {4100, 4160}})
    EXPECT_EQ(CodeMatrix::padGroup(groupSize), padded);
}

TEST(Packing, SaysWhereACodeIsTooWide) {
  const Placement &placement = **Placement::find("int5.f16");
  CodeMatrix matrix = {40, 96, 48};
  std::vector<uint8_t> codes(matrix.n * matrix.k);
  codes[39 * 96 + 95] = 32;
  std::vector<uint32_t> packed(matrix.getNumPackedWords(placement));
  Result<bool> result =
      packCodes(placement, matrix, codes.data(), 96, 0, packed.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(),
            "codes: must be in 0..31 for int5.f16, got 32 at [39, 95]");
}

TEST(Packing, RowsMayLieApart) {
  const Placement &placement = **Placement::find("int8.f16");
  CodeMatrix matrix = {17, 64, 64};
  constexpr int64_t rowStride = 71;
  std::vector<uint8_t> apart(matrix.n * rowStride), together;
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
