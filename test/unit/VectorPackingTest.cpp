//===- VectorPackingTest.cpp - Codes of vectors in packed words -----------===//
#include "lowlp/Decode/PackedTile.h"
#include "lowlp/Decode/Packing.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Numeric/Codec.h"

#include <gtest/gtest.h>

#include <random>

using namespace lowlp;

static const Placement &find(std::string_view name) {
  Result<const Placement *> found = Placement::find(name);
  EXPECT_TRUE(found) << (found ? "" : found.error());
  return **found;
}

// A lane's words are whole accesses of 16 bytes where up to 16 steps make such,
// and units 64 wide are among the shapes.
TEST(VectorPlacement, WordsOfALane) {
  struct {
    const char *name;
    int words, access;
    std::vector<int> unitKs;
  } const cases[] = {{"vec8-2x8.f16", 4, 4, {128, 64, 32}},
                     {"vec8-1x8.f16", 4, 4, {256, 128, 64, 32}},
                     {"vec8-1x16.bf16", 4, 4, {128, 64, 32}},
                     {"vec8-2x12.f16", 12, 4, {256, 128, 64, 32}},
                     {"vec8-2x16.f16", 4, 4, {64, 32}},
                     {"vec4-1x8.f16", 4, 4, {128, 64, 32, 16}},
                     {"vec2-1x8.f16", 4, 4, {64, 32, 16}},
                     {"vec2-2x16.f16", 16, 4, {64, 32, 16}},
                     {"vec16-1x8.f16", 4, 4, {512, 256, 128, 64}},
                     {"vec8-1x12.f16", 12, 4, {512, 256, 128, 64, 32}},
                     {"vec8-1x10.f16", 10, 2, {512, 256, 128, 64, 32}},
                     {"vec8-1x9.f16", 9, 1, {512, 256, 128, 64, 32}},
                     {"vec8-3x8.f16", 12, 4, {256, 128, 64, 32}},
                     {"vec16-4x13.f16", 52, 4, {1024, 512, 256, 128, 64}}};
  for (const auto &[name, words, access, unitKs] : cases) {
    const Placement &placement = find(name);
    EXPECT_EQ(placement.getNumWords(), words) << name;
    EXPECT_EQ(placement.getWordsPerAccess(), access) << name;
    EXPECT_EQ(placement.getUnitKs(), unitKs) << name;
    for (int unitK : unitKs) {
      Placement shaped = placement.withUnitK(unitK);
      EXPECT_EQ(shaped, find(shaped.name()));
      EXPECT_EQ(shaped.getUnitRows() * unitK, 16 * unitKs.front());
      EXPECT_EQ(shaped.getNumWords(), words);
    }
  }
  EXPECT_EQ(find("vec8-2x8.f16").getUnitK(), 64);
  EXPECT_FALSE(Placement::find("vec8-2x8.f16.k256"));
  EXPECT_FALSE(Placement::find("vec8-2x8.int8"));
  EXPECT_FALSE(Placement::find("vec8-5x8.f16"));
  EXPECT_FALSE(Placement::find("vec8"));
}

// Bytes are where one prmt takes them: those of books beside each other, of two
// rows after another.
TEST(VectorPlacement, BytesFollowEachOther) {
  const Placement &placement = find("vec8-2x8.f16.k128");
  EXPECT_EQ(placement.getNumSteps(), 4);
  EXPECT_EQ(placement.getNumSlots(), 8);
  EXPECT_EQ(placement.getPlace(0, 1, 0), (BitPlace{0, 8}));
  EXPECT_EQ(placement.getPlace(1, 0, 0), (BitPlace{0, 16}));
  EXPECT_EQ(placement.getPlace(7, 1, 7), (BitPlace{3, 31}));
  EXPECT_EQ(placement.getRowOfSlot(7), 1);
  // With units half as wide, steps 2 and 3 are those of the next 16 rows.
  EXPECT_EQ(find("vec8-2x8.f16").getRowOfSlot(4), 2);
}

TEST(VectorPlacement, AMatrixHasTheUnitsThatPadLeast) {
  const Placement &one = find("vec8-1x8.f16");
  EXPECT_EQ(one.forMatrix(4096, 4096).name(), "vec8-1x8.f16.k256");
  EXPECT_EQ(one.forMatrix(4096, 896).name(), "vec8-1x8.f16.k128");
  EXPECT_EQ(one.forMatrix(4096, 4128).name(), "vec8-1x8.f16.k32");
  EXPECT_EQ(one.forMatrix(16, 896).name(), "vec8-1x8.f16.k256");
}

TEST(VectorPlacement, FormatsOfCodecs) {
  auto name = [](const char *codec) {
    return CodeFormat::of(Codec::parse(codec)->getField()).name();
  };
  EXPECT_EQ(name("vec4:3x10:int8:256x256"), "vec4-3x10");
  EXPECT_EQ(name("e8p"), "vec8-1x16");
  EXPECT_EQ(name("e8p+e8p"), "vec8-2x16");
  // Codes of 16 and 8 bits are three bytes.
  EXPECT_EQ(name("e8p+e81b"), "vec8-3x8");
  EXPECT_EQ(CodeFormat::parse("vec16-4x1")->name(), "vec16-4x1");
  EXPECT_EQ(CodeFormat::parse("vec3-1x8").error(),
            "code format: expected int{b} or e{X}m{Y} of at most 8 bits, "
            "lut{b} or vec{v}-{r}x{b} of at most 16, got 'vec3-1x8'");
}

/// The code of vector `j` of a row by the formulas of Placement.h.
static uint16_t readCode(const Placement &placement, const uint32_t *packed,
                         int64_t unitsK, int64_t row, int64_t j, int book) {
  int perUnit = placement.getUnitK() / placement.getFormat().vector;
  int64_t unit = row / placement.getUnitRows() * unitsK + j / perUnit;
  auto i = static_cast<int>(row % placement.getUnitRows());
  auto inK = static_cast<int>(j % perUnit);
  int lane = i % 8 * 4 + inK % 4;
  int slot = (i / 16 * placement.getNumSteps() + inK / 4) * 2 + i % 16 / 8;
  int access = placement.getWordsPerAccess();
  std::vector<uint32_t> words(placement.getNumWords());
  for (int word = 0; word < placement.getNumWords(); ++word)
    words[word] = packed[unit * 32 * placement.getNumWords() +
                         (word / access * 32 + lane) * access + word % access];
  return placement.extract(words.data(), slot, book);
}

template <typename Code>
static void checkPacking(const Placement &placement, int64_t n, int64_t vectors,
                         std::mt19937 &random) {
  const CodeFormat &format = placement.getFormat();
  CodeMatrix matrix = {n, vectors * format.codes};
  std::vector<Code> codes(matrix.n * matrix.k);
  for (Code &code : codes)
    code = static_cast<Code>(random() & ((1u << format.bits) - 1));
  std::vector<uint32_t> packed(matrix.getNumPackedWords(placement), 0xdead);
  auto rowStride = static_cast<int64_t>(matrix.k * sizeof(Code));
  auto *bytes = reinterpret_cast<uint8_t *>(codes.data());
  Result<bool> done =
      packCodes(placement, matrix, bytes, rowStride, 0, packed.data(), 2);
  ASSERT_TRUE(done) << done.error();
  for (int64_t row = 0; row < n; ++row)
    for (int64_t j = 0; j < vectors; ++j)
      for (int book = 0; book < format.codes; ++book)
        ASSERT_EQ(readCode(placement, packed.data(),
                           matrix.getNumUnitsK(placement), row, j, book),
                  codes[row * matrix.k + j * format.codes + book])
            << placement.name() << " row " << row << " vector " << j;
  std::vector<Code> found(codes.size(), 0xee);
  unpackCodes(placement, matrix, packed.data(), 0,
              reinterpret_cast<uint8_t *>(found.data()), rowStride, 2);
  EXPECT_EQ(found, codes) << placement.name();
}

TEST(VectorPacking, AllWidthsAndBack) {
  std::mt19937 random(7);
  for (int vector : {2, 4, 8, 16})
    for (int bits = 1; bits <= 16; ++bits)
      for (int books = 1; books <= CodecVectors::maxBooks; ++books) {
        std::string name = "vec" + std::to_string(vector) + "-" +
                           std::to_string(books) + "x" + std::to_string(bits);
        const Placement &any = find(name + ".f16");
        std::vector<int> unitKs = any.getUnitKs();
        Placement placement = any.withUnitK(unitKs[random() % unitKs.size()]);
        int64_t n = 1 + random() % 40, vectors = 1 + random() % 70;
        if (bits > 8)
          checkPacking<uint16_t>(placement, n, vectors, random);
        else
          checkPacking<uint8_t>(placement, n, vectors, random);
      }
}

TEST(VectorPacking, SaysWhereACodeIsTooWide) {
  const Placement &placement = find("vec8-2x7.f16");
  std::vector<uint8_t> codes(20 * 6);
  codes[19 * 6 + 5] = 128;
  CodeMatrix matrix = {20, 6};
  std::vector<uint32_t> packed(matrix.getNumPackedWords(placement));
  EXPECT_EQ(
      packCodes(placement, matrix, codes.data(), 6, 0, packed.data()).error(),
      "codes: must be in 0..127 for vec8-2x7.f16, got 128 at [19, 5]");
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

TEST(VectorTile, TakesTheCodesOfABook) {
  const Placement &placement = find("vec8-2x8.f16.k128");
  Layout codes = *parseLayout("local(1, 4).local(2, 1).spatial(8, 4)");
  Result<PackedTile> tile = matchPackedTile(codes, placement, 0, 1);
  ASSERT_TRUE(tile) << tile.error();
  EXPECT_EQ(str(tile->words), "spatial(1, 1, 32).local(1, 1, 4)");
  ASSERT_EQ(tile->places.size(), 8u);
  for (int slot = 0; slot < 8; ++slot) {
    EXPECT_EQ(tile->places[slot].slot, slot);
    EXPECT_EQ(tile->places[slot].part, 1);
  }
  // Two steps from the second on, for two warps side by side along N.
  Result<PackedTile> part = matchPackedTile(
      *parseLayout("spatial(2, 1).local(1, 2).local(2, 1).spatial(8, 4)"),
      placement, 1, 0);
  ASSERT_TRUE(part) << part.error();
  EXPECT_EQ(part->getSlots(), (std::vector<int>{2, 3, 4, 5}));
}

// Those of all books are the words' bytes in their own order.
TEST(VectorTile, TakesTheCodesOfAllBooks) {
  const Placement &placement = find("vec8-2x8.f16.k128");
  Result<PackedTile> tile = matchPackedTile(
      *parseLayout("local(1, 4).local(2, 1).spatial(8, 4).local(1, 2)"),
      placement, 0);
  ASSERT_TRUE(tile) << tile.error();
  ASSERT_EQ(tile->places.size(), 16u);
  for (int local = 0; local < 16; ++local) {
    const PackedTile::Place &place = tile->places[local];
    EXPECT_EQ(placement.getPlace(place.slot, place.part, 0),
              (BitPlace{local / 4, local % 4 * 8}));
  }
}

TEST(VectorTile, WarpsShareUnitsOfSeveralTiles) {
  const Placement &placement = find("vec8-2x8.f16.k32");
  EXPECT_EQ(findTileShift(placement), (TileShift{1, 0}));
  Result<PackedTile> tile = matchPackedTile(
      *parseLayout("spatial(4, 1).local(2, 1).spatial(8, 4)"), placement, 0, 1);
  ASSERT_TRUE(tile) << tile.error();
  EXPECT_TRUE(tile->areUnitsShared);
}

TEST(VectorTile, SaysWhatDoesNotFit) {
  const Placement &placement = find("vec8-2x8.f16.k128");
  Layout weights = *parseLayout("local(1, 4).spatial(8, 4).local(2, 1)");
  EXPECT_EQ(matchPackedTile(weights, placement, 0, 0).error(),
            "the layout " + str(weights) +
                " takes no units of vec8-2x8.f16.k128, which are held as "
                "local(1, n).local(2, 1).spatial(8, 4), n of the 4 steps");
}
