//===- ScratchTest.cpp - Layouts changed through shared memory ------------===//

#include "lowlp/Layout/Scratch.h"
#include "lowlp/Layout/LayoutText.h"

#include <gtest/gtest.h>

using namespace lowlp;

static Layout parse(const char *text) { return *parseLayout(text); }

TEST(Scratch, CountsPassesOfTheBanks) {
  Layout rows = parse("local(32, 1).spatial(1, 32)");
  Layout columns = parse("local(1, 32).spatial(32, 1)");
  // One pass for each of the 32 values, and 32 where all words are in one bank.
  EXPECT_EQ(countBankPasses(rows, {32, 32}, 32, 1, false), 32);
  EXPECT_EQ(countBankPasses(columns, {32, 32}, 32, 1, false), 32 * 32);
  EXPECT_EQ(countBankPasses(columns, {32, 33}, 32, 1, false), 32);
  // 16 bytes at once: four quarters of a warp.
  EXPECT_EQ(countBankPasses(parse("spatial(32).local(4)"), {128}, 32, 4, false),
            4);
  // All threads read one word; only the first of them stores it.
  Layout replicas = parse("local(2).reduce(spatial(64), dims=[0])");
  EXPECT_EQ(countBankPasses(replicas, {2}, 32, 1, false), 4);
  EXPECT_EQ(countBankPasses(replicas, {2}, 32, 1, true), 2);
}

TEST(Scratch, PadsAgainstConflicts) {
  Scratch scratch = planScratch(parse("local(32, 1).spatial(1, 32)"),
                                parse("local(1, 32).spatial(32, 1)"), 32);
  // 33 would do for the banks; 36 leaves accesses of 16 bytes, where all of a
  // row is in one thread.
  EXPECT_EQ(scratch.shape, (std::vector<int64_t>{32, 36}));
  EXPECT_EQ(scratch.storePasses, 32);
  EXPECT_EQ(scratch.loadPasses, 32);
  EXPECT_EQ(scratch.sizeInBytes(), 32 * 36 * 4);
}

TEST(Scratch, PutsTheDimensionOfRunsLast) {
  Scratch scratch = planScratch(parse("column_spatial(8, 8).local(4, 1)"),
                                parse("spatial(8, 8).local(4, 1)"), 32);
  EXPECT_EQ(scratch.order, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(scratch.shape[0], 8);
}

TEST(Scratch, ElementsThatFillNoBytesBecomeBytes) {
  EXPECT_EQ(
      planScratch(parse("spatial(2, 32)"), parse("column_spatial(2, 32)"), 5)
          .elementBits,
      8);
  // Pairs of 4 bits are a byte in both layouts.
  EXPECT_EQ(planScratch(parse("spatial(2, 32).local(1, 2)"),
                        parse("column_spatial(2, 32).local(1, 2)"), 4)
                .elementBits,
            4);
  EXPECT_EQ(
      planScratch(parse("spatial(2, 32)"), parse("column_spatial(2, 32)"), 16)
          .elementBits,
      16);
}
