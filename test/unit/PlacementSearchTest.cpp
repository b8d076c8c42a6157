//===- PlacementSearchTest.cpp - The packed format is what is found -------===//
#include "lowlp/Decode/PlacementSearch.h"

#include <gtest/gtest.h>

using namespace lowlp;

using Pair = std::pair<CodeFormat, ComputeType>;

static std::string getPairName(const Pair &pair) {
  return pair.first.name() + "." + getName(pair.second);
}

TEST(PlacementSearchTest, AllPairsAreFrozen) {
  std::vector<std::string> searched, frozen;
  for (const Pair &pair : getPackedFormats())
    searched.push_back(getPairName(pair));
  for (const Placement &placement : Placement::all())
    frozen.push_back(placement.name());
  EXPECT_EQ(searched, frozen);
}

TEST(PlacementSearchTest, WhatAComputeTypeDoesNotHold) {
  EXPECT_EQ(
      searchPlacement(*CodeFormat::parse("e3m2"), ComputeType::S8).error(),
      "decode plan: int8 does not hold the values of e3m2: floats are not "
      "integers");
  EXPECT_EQ(
      searchPlacement(*CodeFormat::parse("e5m2"), ComputeType::E4M3).error(),
      "decode plan: f8e4m3 does not hold the values of e5m2: it has 4 bits of "
      "exponent");
}

namespace {
class PlacementSearchPairTest : public testing::TestWithParam<Pair> {};
} // namespace

/// Packed weights in files are read by the frozen placements: a search that
/// finds others is a new version of the packed format.
TEST_P(PlacementSearchPairTest, SearchFindsTheFrozenPlacement) {
  auto [format, compute] = GetParam();
  Result<Placement> found = searchPlacement(format, compute);
  ASSERT_TRUE(found) << found.error();
  const Placement &frozen = **Placement::find(format, compute);
  EXPECT_EQ(printPlacements({*found}), printPlacements({frozen}));
}

INSTANTIATE_TEST_SUITE_P(All, PlacementSearchPairTest,
                         testing::ValuesIn(getPackedFormats()),
                         [](const auto &info) {
                           return info.param.first.name() + "_" +
                                  getName(info.param.second);
                         });
