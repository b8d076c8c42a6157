//===- LayoutTest.cpp - Construction, evaluation and queries --------------===//

#include "lowlp/Layout/Layout.h"
#include "RandomLayout.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include <gtest/gtest.h>

using namespace lowlp;

using Index = std::vector<int64_t>;

TEST(Layout, LocalIsRowMajorInOneThread) {
  // f(0, i) = (i / 3, i % 3): 0:0 0:1 0:2
  //                           0:3 0:4 0:5
  Layout layout = Layout::local({2, 3});
  EXPECT_EQ(layout.shape(), (Index{2, 3}));
  EXPECT_EQ(layout.numThreads(), 1);
  EXPECT_EQ(layout.numLocals(), 6);
  EXPECT_EQ(layout.evaluate(0, 2), (Index{0, 2}));
  EXPECT_EQ(layout.evaluate(0, 3), (Index{1, 0}));
  EXPECT_EQ(layout.evaluate(0, 5), (Index{1, 2}));
}

TEST(Layout, SpatialIsRowMajorOverThreads) {
  // f(t, 0) = (t / 3, t % 3)
  Layout layout = Layout::spatial({2, 3});
  EXPECT_EQ(layout.numThreads(), 6);
  EXPECT_EQ(layout.numLocals(), 1);
  EXPECT_EQ(layout.evaluate(2, 0), (Index{0, 2}));
  EXPECT_EQ(layout.evaluate(3, 0), (Index{1, 0}));
}

TEST(Layout, ColumnVariantsRunDownTheFirstDimension) {
  // f(t, 0) = (t % 2, t / 2): 0:0 2:0 4:0
  //                           1:0 3:0 5:0
  Layout spatial = Layout::columnSpatial({2, 3});
  EXPECT_EQ(spatial.evaluate(1, 0), (Index{1, 0}));
  EXPECT_EQ(spatial.evaluate(4, 0), (Index{0, 2}));
  Layout local = Layout::columnLocal({2, 3});
  EXPECT_EQ(local.evaluate(0, 1), (Index{1, 0}));
  EXPECT_EQ(local.evaluate(0, 4), (Index{0, 2}));
  // With one dimension there is one order.
  EXPECT_EQ(Layout::columnLocal({6}), Layout::local({6}));
}

TEST(Layout, TensorCoreOperand) {
  // Tilus, figure 3: operand A of mma.m16n8k8.
  Layout layout =
      Layout::local({2, 1}) * Layout::spatial({8, 4}) * Layout::local({1, 2});
  EXPECT_EQ(layout.shape(), (Index{16, 8}));
  ASSERT_EQ(layout.numThreads(), 32);
  ASSERT_EQ(layout.numLocals(), 4);
  for (int64_t t = 0; t < 32; ++t)
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(layout.evaluate(t, i),
                (Index{t / 4 + i / 2 * 8, t % 4 * 2 + i % 2}));
}

TEST(Layout, SpatialOfLocal) {
  // Each element of a 2 x 4 grid of threads is a column of two:
  //   row 0   0:0 1:0 2:0 3:0
  //   row 1   0:1 1:1 2:1 3:1
  //   row 2   4:0 5:0 6:0 7:0
  //   row 3   4:1 5:1 6:1 7:1
  Layout layout = Layout::spatial({2, 4}) * Layout::local({2, 1});
  EXPECT_EQ(layout.numThreads(), 8);
  EXPECT_EQ(layout.numLocals(), 2);
  EXPECT_EQ(layout.shape(), (Index{4, 4}));
  EXPECT_EQ(layout.evaluate(5, 1), (Index{3, 1}));
}

TEST(Layout, DefaultIsTheIdentity) {
  EXPECT_EQ(Layout(), Layout::local({1}));
  EXPECT_EQ(Layout(), Layout::spatial({1}));
}

TEST(Layout, PrimitiveRefusesBadShapes) {
  auto error = [](const Index &shape) {
    return Layout::primitive(PrimitiveKind::Local, shape).error();
  };
  EXPECT_EQ(error({}),
            "the shape is empty; a layout has at least one dimension");
  EXPECT_EQ(error({2, 0}), "extents must be at least 1; found (2, 0)");
  EXPECT_EQ(error({2, -3}), "extents must be at least 1; found (2, -3)");
  EXPECT_EQ(error({int64_t(1) << 40, int64_t(1) << 40}),
            "a layout holds at most 2**62 elements; found the shape "
            "(1099511627776, 1099511627776)");
}

//===----------------------------------------------------------------------===//
// Modes
//===----------------------------------------------------------------------===//

TEST(Layout, FromModesMergesAndDrops) {
  // Rows are (m0, m1), columns (m2); t = (m0, m1, m2) and m2 has extent 1, so
  // that m0 and m1 make one digit of extent 6.
  Layout layout =
      *Layout::fromModes({{2, 3}, {1}}, {{0, 2}, {1, 3}, {2, 1}}, {});
  EXPECT_EQ(layout, Layout::spatial({6, 1}));
  EXPECT_EQ(layout.modes(), (std::vector<Mode>{{0, 6, 1}}));
}

TEST(Layout, FromModesMergesReplicas) {
  Layout layout = *Layout::fromModes(
      {{4}}, {Digit::replica(2), Digit::replica(3), {0, 4}}, {});
  EXPECT_EQ(layout.threadDigits(),
            (std::vector<Digit>{Digit::replica(6), {0, 4}}));
  EXPECT_EQ(layout.numThreads(), 24);
  EXPECT_EQ(layout.numElements(), 4);
}

TEST(Layout, ModesOfTheTensorCoreOperand) {
  // Rows: i's 2 outside of t's 8; columns: t's 4 outside of i's 2.
  Layout layout =
      Layout::local({2, 1}) * Layout::spatial({8, 4}) * Layout::local({1, 2});
  EXPECT_EQ(layout.modes(),
            (std::vector<Mode>{{0, 2, 8}, {0, 8, 1}, {1, 4, 2}, {1, 2, 1}}));
  EXPECT_EQ(layout.threadDigits(), (std::vector<Digit>{{1, 8}, {2, 4}}));
  EXPECT_EQ(layout.localDigits(), (std::vector<Digit>{{0, 2}, {3, 2}}));
  EXPECT_EQ(layout.modesOf(0), std::make_pair(0, 2));
  EXPECT_EQ(layout.modesOf(1), std::make_pair(2, 4));
  EXPECT_EQ(layout.modeExtents(),
            (std::vector<std::vector<int64_t>>{{2, 8}, {4, 2}}));
}

TEST(Layout, FromModesRefusesBadLists) {
  auto error = [](std::vector<std::vector<int64_t>> extents,
                  std::vector<Digit> threads, std::vector<Digit> locals) {
    return Layout::fromModes(extents, threads, locals).error();
  };
  EXPECT_EQ(error({}, {}, {}),
            "a layout has at least one dimension; found none");
  EXPECT_EQ(error({{0}}, {{0, 0}}, {}),
            "extents must be at least 1; found (0)");
  EXPECT_EQ(error({{2}}, {{0, 2}, Digit::replica(0)}, {}),
            "extents must be at least 1; found 0");
  EXPECT_EQ(error({{2}}, {}, {}),
            "mode 0 is a digit of neither the thread nor the local index");
  EXPECT_EQ(error({{2}}, {{0, 2}}, {{0, 2}}),
            "mode 0 is the digit of two indices; allowed is one");
  EXPECT_EQ(error({{2}}, {{1, 2}}, {}), "there is no mode 1; there are 1");
  EXPECT_EQ(error({{2}}, {{0, 3}}, {}), "mode 0 has extent 2; its digit has 3");
  EXPECT_EQ(error({{2}}, {{0, 2}}, {Digit::replica(2)}),
            "a replica must be a digit of the thread index; found one in the "
            "local index");
  int64_t large = int64_t(1) << 40;
  EXPECT_EQ(error({{large}}, {{0, large}, Digit::replica(large)}, {}),
            "threads times locals must be at most 2**62; found the extents "
            "(1099511627776, 1099511627776)");
}

TEST(Layout, EqualLayoutsHashAlike) {
  EXPECT_EQ(Layout::spatial({8, 4}) * Layout::spatial({1, 2}),
            Layout::spatial({8, 8}));
  EXPECT_NE(Layout::spatial({8, 4}) * Layout::spatial({2, 1}),
            Layout::spatial({16, 4}));
  EXPECT_EQ(Layout::spatial({2}) * Layout::spatial({3}), Layout::spatial({6}));
  EXPECT_EQ((Layout::spatial({2}) * Layout::spatial({3})).hash(),
            Layout::spatial({6}).hash());
  EXPECT_NE(Layout::spatial({6}).hash(), Layout::local({6}).hash());
  EXPECT_NE(Layout::spatial({6}), Layout::spatial({6, 1}));
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

TEST(Layout, ThreadsHolding) {
  // The tensor core operand: element (9, 5) has row 8 + 1 and column 4 + 1, so
  // t = 1 * 4 + 2 and i = 2 + 1.
  Layout layout =
      Layout::local({2, 1}) * Layout::spatial({8, 4}) * Layout::local({1, 2});
  EXPECT_EQ(*layout.threadsHolding({9, 5}), (std::vector<Owner>{{6, 3}}));
  EXPECT_EQ(layout.threadsHolding({16, 0}).error(),
            "the index (16, 0) is not within the shape (16, 8)");
  EXPECT_EQ(layout.threadsHolding({0}).error(),
            "the index (0) is not within the shape (16, 8)");
}

TEST(Layout, ThreadsHoldingAReplicatedElement) {
  // spatial(2, 3) without its columns: rows go to threads 0-2 and 3-5.
  Layout layout = *reduce(Layout::spatial({2, 3}), {1});
  EXPECT_TRUE(layout.hasReplicas());
  EXPECT_EQ(*layout.threadsHolding({1}),
            (std::vector<Owner>{{3, 0}, {4, 0}, {5, 0}}));
  EXPECT_FALSE(Layout::spatial({2, 3}).hasReplicas());
}

TEST(Layout, ContiguousLocals) {
  Layout layout =
      Layout::local({2, 1}) * Layout::spatial({8, 4}) * Layout::local({1, 2});
  EXPECT_EQ(layout.contiguousLocals(1), 2);
  EXPECT_EQ(layout.contiguousLocals(0), 1);
  // Three bytes a thread are one run of three.
  EXPECT_EQ((Layout::spatial({32}) * Layout::local({3})).contiguousLocals(0),
            3);
  // The other way around consecutive locals are 32 elements apart.
  EXPECT_EQ((Layout::local({3}) * Layout::spatial({32})).contiguousLocals(0),
            1);
  EXPECT_EQ(Layout::spatial({32}).contiguousLocals(0), 1);
}
