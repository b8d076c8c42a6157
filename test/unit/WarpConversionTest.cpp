//===- WarpConversionTest.cpp - Layouts changed within warps --------------===//

#include "lowlp/Layout/WarpConversion.h"
#include "RandomLayout.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace lowlp;
using namespace lowlp::test;

static constexpr int none = WarpConversion::none;

static WarpConversion plan(const char *source, const char *result,
                           int64_t elementBits = 32) {
  std::optional<WarpConversion> found = planWarpConversion(
      *parseLayout(source), *parseLayout(result), elementBits);
  EXPECT_TRUE(found) << source << " -> " << result;
  return found.value_or(WarpConversion());
}

/// Carries the plan out on the numbers of elements, and checks every place.
static void checkPlan(const Layout &source, const Layout &result,
                      const WarpConversion &plan) {
  int64_t size = plan.elementsPerItem;
  using Item = std::vector<std::vector<int64_t>>;
  auto item = [&](const Layout &layout, int64_t thread, int64_t k) {
    Item elements;
    for (int64_t i = k * size; i < (k + 1) * size; ++i)
      elements.push_back(layout.evaluate(thread, i));
    return elements;
  };
  int64_t threads = source.numThreads();
  for (int64_t t = 0; t < threads; ++t) {
    std::vector<Item> held(result.numLocals() / size);
    for (size_t j = 0; j < held.size(); ++j)
      if (plan.kept[j][t] != none)
        held[j] = item(source, t, plan.kept[j][t]);
    for (const ShuffleRound &round : plan.rounds) {
      if (round.target[t] == none)
        continue;
      int64_t owner = t / 32 * 32 + round.lane[t];
      ASSERT_NE(round.offered[owner], none);
      ASSERT_TRUE(held[round.target[t]].empty()) << "comes twice";
      held[round.target[t]] = item(source, owner, round.offered[owner]);
    }
    for (size_t j = 0; j < held.size(); ++j)
      ASSERT_EQ(held[j], item(result, t, static_cast<int64_t>(j)))
          << str(source) << " -> " << str(result) << ", thread " << t;
  }
}

TEST(WarpConversion, OrderOfRegistersIsFree) {
  WarpConversion found =
      plan("spatial(8, 4).local(2, 2)", "spatial(8, 4).column_local(2, 2)");
  EXPECT_TRUE(found.isWithinThreads());
  EXPECT_EQ(found.cost(), 0);
  EXPECT_EQ(found.kept[1], std::vector<int>(32, 2));
}

TEST(WarpConversion, ThreadsMayKeepDifferentRegisters) {
  // Every thread holds both elements; thread t keeps the one of its half.
  WarpConversion found = plan("local(2).reduce(spatial(32), dims=[0])",
                              "spatial(2).reduce(spatial(16), dims=[0])");
  EXPECT_TRUE(found.isWithinThreads());
  EXPECT_EQ(found.kept[0][3], 0);
  EXPECT_EQ(found.kept[0][19], 1);
  EXPECT_GT(found.cost(), 0);
}

TEST(WarpConversion, LanesThatChangePlacesTakeOneRound) {
  WarpConversion found = plan("spatial(8, 4)", "column_spatial(8, 4)");
  ASSERT_EQ(found.rounds.size(), 1u);
  // Thread 1 holds row 1 of column 0, which thread 4 held.
  EXPECT_EQ(found.rounds[0].lane[1], 4);
}

TEST(WarpConversion, DigitsThatChangePlacesTakeHalfOfTheValues) {
  // Lanes t and t ^ 16 exchange one of their two values.
  WarpConversion found = plan("local(2, 1).spatial(2, 16)",
                              "spatial(2, 1).local(2, 1).spatial(1, 16)");
  ASSERT_EQ(found.rounds.size(), 1u);
  EXPECT_EQ(found.rounds[0].lane[3], 19);
  EXPECT_EQ(found.rounds[0].lane[19], 3);
}

TEST(WarpConversion, LanesReadTheirOwnWhereThatLeavesNothingToChoose) {
  // Of four rows lane t has row t mod 4, and all lanes get all four.
  WarpConversion found =
      plan("column_spatial(4, 8).reshape(32)",
           "local(4).spatial(8).reduce(spatial(1, 4), dims=[1])");
  ASSERT_EQ(found.rounds.size(), 4u);
  for (int row = 0; row < 4; ++row) {
    const ShuffleRound &round = found.rounds[row];
    EXPECT_EQ(found.kept[row], std::vector<int>(32, none));
    EXPECT_EQ(round.offered[5], row == 1 ? 0 : none);
    EXPECT_EQ(round.target, std::vector<int>(32, row));
    EXPECT_EQ(lanesByMask(round.lane), std::pair(28, row));
  }
  // A shuffle each, and two instructions for the lane.
  EXPECT_EQ(found.cost(), 4 * (WarpConversion::shuffleCost + 2));
}

TEST(WarpConversion, LanesToReadMayHaveNoMask) {
  // Lane t reads lane t mod 8 * 4 + t / 8.
  std::vector<int> lane;
  for (int t = 0; t < 32; ++t)
    lane.push_back(t % 8 * 4 + t / 8);
  EXPECT_FALSE(lanesByMask(lane));
  // Lanes 1 and 3 read themselves, lane 2 its neighbour; lane 0 reads none.
  EXPECT_EQ(lanesByMask({none, 1, 3, 3}), std::pair(30, 1));
}

TEST(WarpConversion, NarrowElementsTravelTogether) {
  EXPECT_EQ(
      plan("spatial(8, 4).local(1, 4)", "column_spatial(8, 4).local(1, 4)", 8)
          .elementsPerItem,
      4);
  EXPECT_EQ(
      plan("spatial(8, 4).local(1, 6)", "column_spatial(8, 4).local(1, 6)", 5)
          .elementsPerItem,
      6);
  EXPECT_EQ(plan("spatial(8, 4).local(1, 4)",
                 "local(1, 2).spatial(8, 4).local(1, 2)", 8)
                .elementsPerItem,
            2)
      << "only pairs stay together";
}

TEST(WarpConversion, WhatAnotherWarpHoldsIsOutOfReach) {
  EXPECT_FALSE(planWarpConversion(*parseLayout("spatial(2, 32)"),
                                  *parseLayout("column_spatial(2, 32)"), 32));
}

/// A layout of the same shape and threads, with its modes dealt out anew.
static Layout redeal(const Layout &layout, Random &random) {
  // Thread digits keep their extents, so that the number of threads stays; the
  // modes after them are others of the same extent.
  std::vector<Digit> threads = layout.threadDigits(),
                     locals = layout.localDigits();
  for (int swaps = 0; swaps < 6; ++swaps) {
    bool fromLocals = pick(random, 0, 1) && !locals.empty();
    std::vector<Digit> &other = fromLocals ? locals : threads;
    if (threads.empty())
      break;
    Digit &a = threads[pick(random, 0, threads.size() - 1)];
    Digit &b = other[pick(random, 0, other.size() - 1)];
    bool mayMove = !fromLocals || !a.isReplica();
    if (mayMove && (!fromLocals || a.extent == b.extent))
      std::swap(a, b);
  }
  return *Layout::fromModes(layout.modeExtents(), threads, locals);
}

TEST(WarpConversion, RandomPlansAreRightAndInWarpsWheneverTheyCan) {
  Random random(7);
  int numShuffled = 0, numKept = 0, numRefused = 0;
  for (int sample = 0; sample < 1500; ++sample) {
    Layout small = randomLayout(random, 2, 24);
    // Factors that make whole warps: lanes of 32 in all, in one or two digits.
    Layout lanes = pick(random, 0, 1) ? Layout::spatial({8, 4})
                                      : Layout::columnSpatial({2, 16});
    Layout source = pick(random, 0, 1) ? small * lanes : lanes * small;
    Layout result = redeal(source, random);
    int64_t bits = pick(random, 1, 32);
    std::optional<WarpConversion> found =
        planWarpConversion(source, result, bits);
    if (!found) {
      // Then some thread needs what no thread of its warp holds.
      bool isMissing = false;
      for (int64_t t = 0; t < result.numThreads() && !isMissing; ++t)
        for (int64_t i = 0; i < result.numLocals() && !isMissing; ++i) {
          std::vector<Owner> owners =
              *source.threadsHolding(result.evaluate(t, i));
          isMissing = std::none_of(owners.begin(), owners.end(), [&](Owner o) {
            return o.thread / 32 == t / 32;
          });
        }
      ASSERT_TRUE(isMissing) << str(source) << " -> " << str(result);
      ++numRefused;
      continue;
    }
    ASSERT_LE(found->elementsPerItem * bits, 32);
    checkPlan(source, result, *found);
    ++(found->isWithinThreads() ? numKept : numShuffled);
  }
  EXPECT_GT(numShuffled, 200);
  EXPECT_GT(numKept, 100);
  EXPECT_GT(numRefused, 100);
}
