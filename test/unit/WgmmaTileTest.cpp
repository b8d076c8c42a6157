//===- WgmmaTileTest.cpp - Shared tiles that wgmma multiplies by ----------===//

#include "lowlp/Layout/WgmmaTile.h"

#include <gtest/gtest.h>

using namespace lowlp;

namespace {

Result<WgmmaTile> find(const char *text, int64_t elementBytes = 2) {
  return findWgmmaTile(*parseSharedLayout(text), elementBytes);
}

/// Where the hardware takes element (row, k) to be, K steps of 32 bytes being
/// instructions of their own (PTX ISA, "Shared Memory Matrix Layout").
int64_t expectedByte(const WgmmaTile &tile, int64_t row, int64_t kByte) {
  int64_t run = tile.swizzleBytes ? tile.swizzleBytes : 16;
  int64_t linear = row / 8 * tile.strideBytes + row % 8 * run +
                   kByte / run * tile.leadingBytes + kByte % run;
  if (!tile.swizzleBytes)
    return linear;
  return linear ^ ((linear >> 7 & (tile.swizzleBytes / 16 - 1)) << 4);
}

// Each layout, checked element by element against the addresses of the ISA.
TEST(WgmmaTile, describesWhereElementsLie) {
  struct Case {
    const char *text;
    int64_t elementBytes;
    WgmmaTile tile;
  };
  const Case cases[] = {
      {"swizzle(local(16, 8), dim=1).local(1, 8)", 2, {128, 1024, 1024}},
      {"swizzle(local(16, 8), dim=1).local(1, 16)", 1, {128, 1024, 1024}},
      // Two patterns along K, each of all rows, or one after the other.
      {"local(1, 2).swizzle(local(24, 8), dim=1).local(1, 8)",
       2,
       {128, 3072, 1024}},
      {"local(3, 2).swizzle(local(8, 8), dim=1).local(1, 8)",
       2,
       {128, 1024, 2048}},
      {"swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)",
       2,
       {64, 512, 512}},
      {"local(1, 3).swizzle(local(16, 2), dim=1, log_step=2).local(1, 8)",
       2,
       {32, 512, 256}},
      {"local(2, 4).local(8, 8)", 2, {0, 128, 512}},
      {"column_local(2, 4).local(8, 8)", 2, {0, 256, 128}},
      {"local(1, 4).local(8, 16)", 1, {0, 128, 128}},
  };
  for (const Case &test : cases) {
    Result<WgmmaTile> tile = find(test.text, test.elementBytes);
    ASSERT_TRUE(tile) << test.text << ": " << tile.error();
    EXPECT_TRUE(*tile == test.tile)
        << test.text << ": " << tile->swizzleBytes << ", " << tile->leadingBytes
        << ", " << tile->strideBytes;
    SharedLayout layout = *parseSharedLayout(test.text);
    for (int64_t row = 0; row < layout.shape()[0]; ++row)
      for (int64_t k = 0; k < layout.shape()[1]; ++k)
        ASSERT_EQ(*layout.addressOf({row, k}) * test.elementBytes,
                  expectedByte(*tile, row, k * test.elementBytes))
            << test.text << " at " << row << ", " << k;
  }
}

TEST(WgmmaTile, knowsStages) {
  Result<WgmmaTile> tile =
      find("local(3, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)");
  ASSERT_TRUE(tile) << tile.error();
  EXPECT_EQ(tile->alignBytes(), 1024);
  // Stages of 8 rows and 64 bytes of something else: patterns would begin
  // anywhere.
  EXPECT_FALSE(find("column_local(2, 1, 1).local(1, 16, 64)"));
}

TEST(WgmmaTile, refusesWhatTheHardwareDoesNotKnow) {
  for (const char *text :
       {"local(16, 64)", "column_local(16, 64)",
        // The swizzle of another length of rows.
        "swizzle(local(16, 8), dim=1, log_step=1).local(1, 8)",
        "swizzle(local(16, 4), dim=1).local(1, 8)",
        "swizzle(local(16, 16), dim=1).local(1, 8)",
        // By chunks of 8 bytes.
        "swizzle(local(16, 8), dim=1).local(1, 4)",
        // K not innermost.
        "swizzle(local(8, 16), dim=0).local(8, 1)"})
    EXPECT_FALSE(find(text)) << text;
}

TEST(WgmmaTile, listsWhatTheShapeAllows) {
  EXPECT_EQ(find("local(16, 32)").error(),
            "'local(16, 32)'; allowed are swizzle(local(16, 4), dim=1, "
            "log_step=1).local(1, 8) or local(1, 2).swizzle(local(16, 2), "
            "dim=1, log_step=2).local(1, 8) or local(2, 4).local(8, 8)");
  for (const char *allowed :
       {"swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)",
        "local(1, 2).swizzle(local(16, 2), dim=1, log_step=2).local(1, 8)",
        "local(2, 4).local(8, 8)"})
    EXPECT_TRUE(find(allowed)) << allowed;
}

} // namespace
