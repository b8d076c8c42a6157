//===- LayoutAlgebraTest.cpp - Operations, by examples --------------------===//

#include "lowlp/Layout/LayoutAlgebra.h"
#include "RandomLayout.h"
#include "lowlp/Layout/LayoutText.h"

#include <gtest/gtest.h>

using namespace lowlp;

static Layout parse(const std::string &text) {
  Result<Layout> layout = parseLayout(text);
  EXPECT_TRUE(layout) << layout.error();
  return *layout;
}

TEST(Compose, BroadcastsTheLowerRank) {
  EXPECT_EQ(Layout::spatial({4}) * Layout::local({2, 3}),
            Layout::spatial({1, 4}) * Layout::local({2, 3}));
  EXPECT_EQ(Layout::spatial({4, 2}) * Layout::local({3}),
            Layout::spatial({4, 2}) * Layout::local({1, 3}));
}

TEST(Compose, RefusesWhatDoesNotFit) {
  Layout large = Layout::local({int64_t(1) << 40});
  EXPECT_EQ(compose(large, large).error(),
            "threads times locals must be at most 2**62; found "
            "local(1099511627776) composed with local(1099511627776)");
}

TEST(Divide, Examples) {
  EXPECT_EQ(*divideRight(Layout::spatial({2, 4}), Layout::spatial({1, 2})),
            Layout::spatial({2, 2}));
  EXPECT_EQ(*divideRight(Layout::local({2, 4}), Layout::local({1, 2})),
            Layout::local({2, 2}));
  EXPECT_EQ(
      *divideLeft(parse("local(2, 1).spatial(2, 4)"), Layout::local({2, 1})),
      Layout::spatial({2, 4}));
  EXPECT_EQ(*divideRight(parse("local(2, 1).spatial(8, 4).local(1, 2)"),
                         parse("spatial(8, 4).local(1, 2)")),
            Layout::local({2, 1}));
}

TEST(Divide, SplitsModesOfAnyExtent) {
  EXPECT_EQ(*divideRight(Layout::spatial({12}), Layout::spatial({3})),
            Layout::spatial({4}));
  EXPECT_EQ(*divideLeft(Layout::spatial({12}), Layout::spatial({3})),
            Layout::spatial({4}));
}

TEST(Divide, SplitsReplicas) {
  Layout f = parse("reduce(spatial(1, 6), dims=[1])");
  Layout g = parse("reduce(spatial(1, 3), dims=[1])");
  EXPECT_EQ(str(*divideRight(f, g)), "reduce(spatial(1, 2), dims=[1])");
}

TEST(Divide, QuotientKeepsTheRank) {
  EXPECT_EQ(*divideRight(Layout::local({2, 4}), Layout::local({4})),
            Layout::local({2, 1}));
  EXPECT_EQ(*divideRight(Layout::local({2, 4}), Layout::local({2, 4})),
            Layout::local({1, 1}));
}

TEST(Divide, RefusesWhatHasNoQuotient) {
  EXPECT_EQ(
      divideRight(Layout::spatial({2, 4}), Layout::local({1, 2})).error(),
      "there is no layout h such that f is h * g, where f is spatial(2, 4) and "
      "g is local(1, 2)");
  EXPECT_EQ(divideLeft(Layout::spatial({12}), Layout::spatial({5})).error(),
            "there is no layout h such that f is g * h, where f is "
            "spatial(12) and g is spatial(5)");
  EXPECT_EQ(divideRight(Layout::local({4}), Layout::local({1, 2})).error(),
            "the divisor local(1, 2) has rank 2; allowed is up to 1, the rank "
            "of local(4)");
  // Sizes divide, but the inner digits of t are columns, not rows.
  EXPECT_FALSE(divideRight(Layout::spatial({4, 4}), Layout::spatial({4, 1})));
  // The boundary of 3 threads falls within the digit of extent 4.
  EXPECT_FALSE(divideRight(parse("spatial(3, 4)"), parse("spatial(3, 1)")));
}

TEST(Reduce, ThreadsBecomeReplicasAndLocalsGo) {
  // Tilus, appendix B.
  Layout layout = *reduce(Layout::spatial({1, 1, 4}), {2});
  EXPECT_EQ(layout.shape(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(layout.numThreads(), 4);
  for (int64_t t = 0; t < 4; ++t)
    EXPECT_EQ(layout.evaluate(t, 0), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(*reduce(Layout::local({2, 3}), {1}), Layout::local({2}));
}

TEST(Reduce, DropsLocalsOfADimension) {
  EXPECT_EQ(*dropLocals(parse("local(1, 8).local(2, 1).spatial(8, 4)"), 1),
            parse("local(2, 1).spatial(8, 4)"));
  EXPECT_EQ(*dropLocals(parse("spatial(8, 4).local(2, 3)"), 0),
            parse("spatial(8, 4).local(1, 3)"));
  EXPECT_EQ(*dropLocals(Layout::local({2, 3}), 1), Layout::local({2, 1}));
  EXPECT_FALSE(dropLocals(Layout::local({2, 3}), 2));
}

TEST(Part, IsHeldAsWhatIsLeft) {
  Layout layout = parse("local(2, 1, 1).spatial(1, 8, 4).local(3, 1, 2)");
  EXPECT_EQ(*findPart(layout, 1), parse("spatial(8, 4).local(1, 2)"));
  EXPECT_EQ(*findPart(layout, 0), layout);
  // Dimension 0 is 3 a + b for local 6 a + 2 b + c.
  EXPECT_EQ(getPartLocals(layout, {4}), (std::vector<int64_t>{8, 9}));
  EXPECT_EQ(getPartLocals(layout, {}).size(), 12U);
  EXPECT_FALSE(findPart(layout, 2));
}

TEST(Reduce, KeepsADimension) {
  EXPECT_EQ(*reduce(Layout::local({2, 3}), {1}, /*keepDims=*/true),
            Layout::local({2, 1}));
  EXPECT_EQ(*reduce(Layout::local({2, 3}), {0, 1}), Layout::local({1}));
  EXPECT_EQ(*reduce(Layout::local({2, 3}), {-1}), Layout::local({2}));
}

TEST(Reduce, RefusesBadDimensions) {
  EXPECT_EQ(reduce(Layout::local({2, 3}), {2}).error(),
            "there is no dimension 2; allowed are -2 to 1");
  EXPECT_EQ(reduce(Layout::local({2, 3}), {1, -1}).error(),
            "dimension -1 is named twice in (1, -1)");
}

TEST(Permute, Examples) {
  EXPECT_EQ(*permute(Layout::local({2, 3}), {1, 0}),
            Layout::columnLocal({3, 2}));
  EXPECT_EQ(permute(Layout::local({2, 3}), {0}).error(),
            "a permutation names all 2 dimensions once; found (0)");
}

TEST(Reshape, Examples) {
  EXPECT_EQ(*reshape(Layout::spatial({12}), {3, 4}), Layout::spatial({3, 4}));
  EXPECT_EQ(*reshape(Layout::spatial({3, 4}), {12}), Layout::spatial({12}));
  EXPECT_EQ(*reshape(Layout::columnLocal({2, 3}), {2, 1, 3}),
            Layout::columnLocal({2, 1, 3}));
}

TEST(Reshape, RefusesWhatIsNoLayout) {
  EXPECT_EQ(reshape(Layout::local({6}), {4}).error(),
            "the shape (4) has 4 elements; the layout's shape (6) has 6");
  // Element e of 6 is in thread e / 3, local e % 3. A column of two elements
  // would begin in the middle of a thread's three.
  EXPECT_EQ(reshape(parse("spatial(2).local(3)"), {3, 2}).error(),
            "the layout spatial(2).local(3) of shape (6) has no reshape to "
            "(3, 2): dimension 1 would end within a digit that it does not "
            "divide");
  EXPECT_EQ(reshape(Layout::local({6}), {6, 0}).error(),
            "extents must be at least 1; found (6, 0)");
}

TEST(Squeeze, Examples) {
  EXPECT_EQ(*squeeze(Layout::local({1, 3, 1}), {0, -1}), Layout::local({3}));
  EXPECT_EQ(*squeeze(Layout::local({1, 1}), {0, 1}), Layout::local({1}));
  EXPECT_EQ(squeeze(Layout::local({2, 1}), {0}).error(),
            "only dimensions of extent 1 can be dropped; dimension 0 of the "
            "shape (2, 1) has extent 2");
}

TEST(Unsqueeze, Examples) {
  EXPECT_EQ(*unsqueeze(Layout::local({2, 3}), {0, 2}),
            Layout::local({1, 2, 1, 3}));
  EXPECT_EQ(*unsqueeze(Layout::local({2, 3}), {-1}), Layout::local({2, 3, 1}));
  EXPECT_EQ(unsqueeze(Layout::local({2}), {2}).error(),
            "there is no dimension 2; allowed are -2 to 1");
}

TEST(Broadcast, Examples) {
  EXPECT_EQ(*broadcast(Layout::local({2}), 3), Layout::local({1, 1, 2}));
  EXPECT_EQ(broadcast(Layout::local({2, 2}), 1).error(),
            "a layout of rank 2 cannot be broadcast to rank 1; allowed is its "
            "own rank or more");
  EXPECT_EQ(broadcast(Layout::local({2}), 65).error(),
            "rank 65 is too large; allowed is 64");
}

TEST(BroadcastLocals, IndicesAreSumsOfThoseOfThreadAndLocal) {
  for (const char *text :
       {"local(2, 1).spatial(8, 4).local(1, 2)",
        "column_local(3, 2).spatial(2, 5).column_local(2, 3).spatial(2, 1)",
        "local(2, 3).reduce(spatial(3, 4), dims=[1], keep_dims=True)"}) {
    Layout f = parse(text);
    for (int64_t t = 0; t < f.numThreads(); ++t)
      for (int64_t i = 0; i < f.numLocals(); ++i) {
        std::vector<int64_t> sum = f.evaluate(t, 0), ofLocal = f.evaluate(0, i);
        for (int64_t dim = 0; dim < f.rank(); ++dim)
          sum[dim] += ofLocal[dim];
        EXPECT_EQ(f.evaluate(t, i), sum) << text;
      }
  }
}

TEST(BroadcastLocals, RepeatsWhatAThreadHolds) {
  Layout tile = parse("local(2, 1).spatial(8, 4).local(1, 2)");
  // A thread holds 2 rows of 2 neighbours: the sum of each row, twice.
  EXPECT_EQ(*broadcastLocals(*reduce(tile, {1}, true), tile),
            (std::vector<int64_t>{0, 0, 1, 1}));
  // Sums of columns, without their dimension: the same for both rows.
  EXPECT_EQ(*broadcastLocals(*reduce(tile, {0}), tile),
            (std::vector<int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(*broadcastLocals(tile, tile), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(BroadcastLocals, RefusesWhatWouldMove) {
  Layout tile = parse("spatial(4, 1).local(1, 4)");
  EXPECT_EQ(broadcastLocals(parse("spatial(1, 4)"), tile).error(),
            "thread 0 does not hold element (0, 1) of the source, which it "
            "needs for its value 1 of the result");
  EXPECT_EQ(broadcastLocals(parse("spatial(8)"), tile).error(),
            "threads must match: the source is held by 8, the result by 4");
  EXPECT_EQ(broadcastLocals(parse("spatial(4).local(3)"), tile).error(),
            "a tile of shape (12) does not broadcast to (4, 4): from the last "
            "dimension on, extents must match or be 1");
  // What is right for thread 0 alone.
  EXPECT_EQ(
      broadcastLocals(parse("spatial(2, 2)"), parse("column_spatial(2, 2)"))
          .error(),
      "thread 1 does not hold element (1, 0) of the source, which it needs for "
      "its value 0 of the result");
  EXPECT_EQ(
      broadcastLocals(
          parse("local(2).reduce(spatial(2), dims=[0], keep_dims=True)"),
          parse("spatial(2)"))
          .error(),
      "for value 0 of the result thread 1 needs its value 1 of the source, "
      "thread 0 its value 0: registers are chosen at compile time");
}
