//===- ReinterpretTest.cpp - The same bits as another element type --------===//

#include "lowlp/Layout/Reinterpret.h"
#include "lowlp/Layout/LayoutText.h"

#include <gtest/gtest.h>

using namespace lowlp;

/// The text of the reinterpreted layout, or the error.
static std::string reinterpreted(const std::string &text, int64_t fromBits,
                                 int64_t toBits) {
  Result<Layout> layout = reinterpret(*parseLayout(text), fromBits, toBits);
  return layout ? str(*layout) : layout.error();
}

TEST(Reinterpret, PapersExample) {
  // Tilus, section 6.2: 4 values of 6 bits are 3 bytes; gcd(3, 16) is 1.
  EXPECT_EQ(reinterpreted("local(2, 1).column_spatial(4, 8).local(2, 1)", 6, 8),
            "local(3).spatial(32)");
}

TEST(Reinterpret, TakesTheWidestAccess) {
  // 64 values of 4 bits are 32 bytes, two accesses of 16.
  EXPECT_EQ(reinterpreted("spatial(32).local(64)", 4, 8),
            "local(2).spatial(32).local(16)");
  // 32 values of 6 bits are 24 bytes; gcd(24, 16) is 8.
  EXPECT_EQ(reinterpreted("spatial(32).local(32)", 6, 8),
            "local(3).spatial(32).local(8)");
  // The same bits in words of 32: 6 words, 4 of them in an access.
  EXPECT_EQ(reinterpreted("spatial(32).local(32)", 6, 32),
            "local(3).spatial(32).local(2)");
}

TEST(Reinterpret, UnitsThatFillNoAccess) {
  EXPECT_EQ(reinterpreted("spatial(32).local(21)", 8, 6),
            "local(28).spatial(32)");
}

TEST(Reinterpret, RefusesOddBits) {
  EXPECT_EQ(reinterpreted("spatial(32).local(3)", 6, 8),
            "a thread of spatial(32).local(3) holds 18 bits (3 elements of 6), "
            "which is no multiple of the 8 bits of the new element");
  EXPECT_EQ(reinterpreted("local(1)", 0, 8),
            "an element has 1 to 128 bits; found 0");
  EXPECT_EQ(reinterpreted("local(1)", 8, 129),
            "an element has 1 to 128 bits; found 129");
}

TEST(SameBitsPerThread, Examples) {
  Layout i6 = *parseLayout("local(2, 1).column_spatial(4, 8).local(2, 1)");
  Layout u8 = *parseLayout("local(3).spatial(32)");
  EXPECT_TRUE(sameBitsPerThread(i6, 6, u8, 8));
  EXPECT_FALSE(sameBitsPerThread(i6, 6, u8, 16));
  EXPECT_FALSE(sameBitsPerThread(i6, 6, Layout::local({3}), 8));
}
