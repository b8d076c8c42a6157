//===- SharedLayoutTest.cpp - Layouts of shared memory --------------------===//

#include "lowlp/Layout/SharedLayout.h"

#include <gtest/gtest.h>

#include <set>

using namespace lowlp;

using Index = std::vector<int64_t>;

static std::string reprint(const std::string &text) {
  Result<SharedLayout> layout = parseSharedLayout(text);
  return layout ? layout->str() : layout.error();
}

// Of figure 14 of the Tilus paper.
static const char *const stagesOfA =
    "local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)";
static const char *const stagedC =
    "local(1, 2).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)";

static const char *const layouts[] = {
    "local(3, 1536)",
    "column_local(4, 6)",
    stagesOfA,
    stagedC,
    "swizzle(local(4, 4), dim=0)",
    "swizzle(local(6, 4), dim=1).local(1, 3)",
    "swizzle(column_local(4, 8), dim=1, log_step=1).column_local(2, 2)",
    "local(5).swizzle(local(8, 2), dim=0).local(3, 1, 2)",
    "column_local(2, 3).reshape(6).swizzle(local(2, 4), dim=1)",
    "local(1, 1, 1).swizzle(local(4, 4), dim=1)",
};

TEST(SharedLayout, TextRoundTrips) {
  for (const char *text : layouts) {
    Result<SharedLayout> layout = parseSharedLayout(text);
    ASSERT_TRUE(layout) << text << ": " << layout.error();
    EXPECT_EQ(*parseSharedLayout(layout->str()), *layout) << text;
    EXPECT_EQ(parseSharedLayout(layout->str())->hash(), layout->hash());
  }
  EXPECT_EQ(reprint(stagesOfA), stagesOfA);
  EXPECT_EQ(reprint(stagedC), stagedC);
  EXPECT_EQ(reprint("local(1).swizzle(local(4, 4), dim=1).local(1, 1)"),
            "swizzle(local(4, 4), dim=1)");
}

TEST(SharedLayout, AddressesAndElementsAreInverse) {
  for (const char *text : layouts) {
    SharedLayout layout = *parseSharedLayout(text);
    std::set<Index> seen;
    for (int64_t address = 0; address < layout.numElements(); ++address) {
      Index index = layout.evaluate(address);
      EXPECT_TRUE(seen.insert(index).second) << text;
      EXPECT_EQ(*layout.addressOf(index), address) << text;
    }
  }
}

TEST(SharedLayout, RunsLieSideBySide) {
  for (const char *text : layouts) {
    SharedLayout layout = *parseSharedLayout(text);
    for (int64_t dim = 0; dim < layout.rank(); ++dim) {
      int64_t run = layout.contiguousAddresses(dim);
      ASSERT_EQ(layout.shape()[dim] % run, 0) << text;
      for (int64_t address = 0; address < layout.numElements(); ++address) {
        Index expected = layout.evaluate(address / run * run);
        EXPECT_EQ(expected[dim] % run, 0) << text;
        expected[dim] += address % run;
        EXPECT_EQ(layout.evaluate(address), expected) << text;
      }
    }
  }
  EXPECT_EQ(parseSharedLayout(stagesOfA)->contiguousAddresses(2), 8);
  EXPECT_EQ(parseSharedLayout(stagedC)->contiguousAddresses(1), 8);
}

// Chunk j of row i of stage s: (16 s + i) * 256 + 8 (j xor i).
TEST(SharedLayout, SwizzlesAsThePaperSays) {
  SharedLayout layout = *parseSharedLayout(stagesOfA);
  EXPECT_EQ(layout.shape(), (Index{3, 16, 256}));
  for (int64_t s = 0; s < 3; ++s)
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t c = 0; c < 256; ++c)
        EXPECT_EQ(*layout.addressOf({s, i, c}),
                  (16 * s + i) * 256 + 8 * ((c / 8) ^ i) + c % 8);
}

// Eight rows of 16 bytes that one instruction reads at once lie in eight
// different quarters of the 128 bytes of all banks.
TEST(SharedLayout, RowsOfAMatrixMeetDifferentBanks) {
  SharedLayout layout = *parseSharedLayout(stagesOfA);
  for (int64_t column = 0; column < 256; column += 8) {
    std::set<int64_t> places;
    for (int64_t row = 0; row < 8; ++row)
      places.insert(*layout.addressOf({1, row, column}) * 2 % 128 / 16);
    EXPECT_EQ(places.size(), 8u);
  }
}

TEST(SharedLayout, DropsSwizzlesThatChangeNothing) {
  EXPECT_EQ(reprint("swizzle(local(4, 1), dim=1).local(1, 8)"), "local(4, 8)");
  EXPECT_EQ(reprint("swizzle(local(4, 8), dim=1, log_step=2)"), "local(4, 8)");
}

TEST(SharedLayout, DiffersWhereTheSwizzleDoes) {
  SharedLayout a = *parseSharedLayout("swizzle(local(8, 4), dim=1)");
  EXPECT_NE(a, *parseSharedLayout("local(8, 4)"));
  EXPECT_NE(a, *parseSharedLayout("swizzle(local(8, 4), dim=0)"));
  EXPECT_NE(a, *parseSharedLayout("swizzle(local(8, 4), dim=1, log_step=1)"));
}

TEST(SharedLayout, RefusesWhatIsNoSharedLayout) {
  EXPECT_EQ(reprint("spatial(4, 4)"),
            "the layout of a shared tile has 1 thread, but 'spatial(4, 4)' "
            "has 16");
  EXPECT_EQ(reprint("swizzle(local(4), dim=1)"),
            "the factor of a swizzle has 2 dimensions; found local(4)");
  EXPECT_EQ(reprint("swizzle(local(4, 4), dim=2)"),
            "dim of a swizzle must be 0 or 1; found 2");
  EXPECT_EQ(reprint("swizzle(local(4, 4), dim=1, log_step=-1)"),
            "log_step of a swizzle must be 0 to 62; found -1");
  EXPECT_EQ(reprint("swizzle(local(4, 6), dim=1)"),
            "the extent along the swizzled dimension must be a power of two; "
            "found 6 in local(4, 6)");
  EXPECT_EQ(reprint("swizzle(local(4, 4), dim=1).local(8, 1).spatial(2, 1)"),
            "expected local or column_local after a swizzle at position 40 of "
            "the layout 'swizzle(local(4, 4), dim=1).local(8, 1).spatial(2, "
            "1)'; found 'spatial'");
  EXPECT_EQ(reprint("swizzle(local(4, 4))"),
            "expected ',' at position 19 of the layout 'swizzle(local(4, 4))'; "
            "found ')'");
  EXPECT_EQ(
      reprint("swizzle(local(4, 4), dim=1) local(2)"),
      "expected '.' or the end of the layout at position 28 of the layout "
      "'swizzle(local(4, 4), dim=1) local(2)'; found 'local'");
}

TEST(SharedLayout, RefusesIndicesOutsideOfTheShape) {
  SharedLayout layout = *parseSharedLayout("swizzle(local(4, 4), dim=1)");
  EXPECT_FALSE(layout.addressOf({4, 0}));
  EXPECT_FALSE(layout.addressOf({0}));
}
