//===- PlacementTest.cpp - Placements, as data and as text ----------------===//
#include "lowlp/Decode/PackedTile.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace lowlp;

namespace {
CodeFormat getFormat(const std::string &name) {
  return *CodeFormat::parse(name);
}

/// Two bits for each weight of a unit of 16 rows: 2 words.
std::vector<BitPlace> getPlaces() {
  std::vector<BitPlace> places;
  places.reserve(64);
  for (int bit = 0; bit < 64; ++bit)
    places.push_back({bit / 32, bit % 32});
  return places;
}

Result<Placement> create(std::vector<BitPlace> places, int rowTiles = 1) {
  return Placement::create(getFormat("int2"), ComputeType::F16, rowTiles,
                           std::move(places));
}
} // namespace

TEST(PlacementTest, EveryBitIsTakenOnce) {
  std::vector<BitPlace> places = getPlaces();
  EXPECT_TRUE(create(places));
  EXPECT_EQ(create(places, 3).error(),
            "placement: a unit has 1, 2 or 4 tiles of 16 rows, got 3");
  EXPECT_EQ(create(places, 2).error(),
            "placement: expected 128 places, got 64");
  places[5] = {0, 4};
  EXPECT_EQ(create(places).error(),
            "placement: bit 4 of word 0 is taken twice");
  places[5] = {0, 32};
  EXPECT_EQ(create(places).error(), "placement: bit 32 of word 0 is outside of "
                                    "2 words of 32 bits");
  places[5] = {2, 0};
  EXPECT_EQ(create(places).error(), "placement: bit 0 of word 2 is outside of "
                                    "2 words of 32 bits");
  places[5] = {-1, 0};
  EXPECT_FALSE(create(places));
}

TEST(PlacementTest, ContiguousCodesFollowEachOther) {
  Placement placement =
      Placement::contiguous(getFormat("int6"), ComputeType::F16, 1);
  // The sixth weight starts at bit 30, and so its last bits are in word 1.
  EXPECT_EQ(placement.getPlace(2, 1, 1), (BitPlace{0, 31}));
  EXPECT_EQ(placement.getPlace(2, 1, 2), (BitPlace{1, 0}));
  // Of 4 + 2 bits the low ones take 32 * 4 bits, four words.
  Placement slices =
      Placement::contiguous(getFormat("lut6"), ComputeType::F16, 1, {4, 2});
  EXPECT_EQ(slices.getPlace(2, 1, 3), (BitPlace{0, 23}));
  EXPECT_EQ(slices.getPlace(2, 1, 4), (BitPlace{4, 10}));
}

TEST(PlacementTest, UnitsAndRows) {
  const Placement &one = **Placement::find("int1.f16");
  EXPECT_EQ(one.getUnitRows(), 64);
  EXPECT_EQ(one.getNumSlots(), 64);
  EXPECT_EQ(one.getNumWords(), 4);
  EXPECT_EQ(one.getWordsPerAccess(), 4);
  EXPECT_EQ(one.getRowOfSlot(16), 2);
  EXPECT_EQ(one.getRowOfSlot(63), 7);
  const Placement &three = **Placement::find("int3.f16");
  EXPECT_EQ(three.getUnitRows(), 16);
  EXPECT_EQ(three.getNumSlots(), 16);
  EXPECT_EQ(three.getNumWords(), 3);
  EXPECT_EQ(three.getWordsPerAccess(), 1);
  const Placement &bytes = **Placement::find("int4.int8");
  EXPECT_EQ(bytes.getNumParts(), 4);
  EXPECT_EQ(bytes.getNumSteps(), 2);
  EXPECT_EQ(bytes.getNumSlots(), 8);
}

TEST(PlacementTest, UnitsOfOtherShapesHaveTheSameSlots) {
  for (const Placement &wide : Placement::all())
    for (int unitK : {64, 32, 16}) {
      if (unitK < wide.getFamily().getStepK())
        continue;
      FragmentFamily family = wide.getFamily();
      family.unitK = unitK;
      const Placement &shaped = **Placement::find(wide.getFormat(), family);
      EXPECT_EQ(shaped, wide.withUnitK(unitK));
      EXPECT_EQ(shaped.withUnitK(64), wide);
      EXPECT_EQ(shaped.getUnitK(), unitK);
      EXPECT_EQ(shaped.getUnitRows() * unitK, wide.getUnitRows() * 64);
      EXPECT_EQ(shaped.getNumWords(), wide.getNumWords());
      EXPECT_EQ(shaped.getNumSlots(), wide.getNumSlots());
      EXPECT_EQ(shaped.getPlace(5, 1, 0), wide.getPlace(5, 1, 0));
    }
  // Steps 2 and 3 of the 16 rows are steps 0 and 1 of the second 16.
  const Placement &narrow = **Placement::find("int4.f16.k32");
  EXPECT_EQ(narrow.getRowOfSlot(7), 1);
  EXPECT_EQ(narrow.getRowOfSlot(8), 2);
  EXPECT_FALSE(Placement::find("int4.int8.k16"));
  EXPECT_FALSE(Placement::find("int4.f16.k64"));
}

TEST(PlacementTest, AMatrixHasTheUnitsThatPadLeast) {
  const Placement &four = **Placement::find("int4.f16");
  struct {
    int64_t n, k;
    const char *name;
  } const cases[] = {{4096, 64, "int4.f16"},
                     {4096, 96, "int4.f16.k32"},
                     {4096, 16, "int4.f16.k16"},
                     {4096, 4112, "int4.f16.k16"},
                     {4096, 100, "int4.f16.k16"},
                     {4096, 120, "int4.f16"},
                     // 16 rows take less than 32 of fewer weights.
                     {16, 96, "int4.f16"},
                     {20, 1008, "int4.f16"},
                     {20, 96, "int4.f16.k32"}};
  for (auto [n, k, name] : cases)
    EXPECT_EQ(four.forMatrix(n, k).name(), name) << n << "x" << k;
  EXPECT_EQ(four.withUnitK(16).forMatrix(64, 64), four);
  const Placement &bytes = **Placement::find("int4.int8");
  EXPECT_EQ(bytes.forMatrix(4096, 16).name(), "int4.int8.k32");
}

TEST(PlacementTest, CodesGoInAndComeOut) {
  for (const Placement &placement : Placement::all()) {
    std::vector<uint32_t> words(placement.getNumWords());
    int mask = (1 << placement.getFormat().bits) - 1;
    for (int slot = 0; slot < placement.getNumSlots(); ++slot)
      for (int part = 0; part < placement.getNumParts(); ++part)
        placement.insert(words.data(), slot, part,
                         static_cast<uint8_t>((7 * slot + 3 * part) & mask));
    for (int slot = 0; slot < placement.getNumSlots(); ++slot)
      for (int part = 0; part < placement.getNumParts(); ++part)
        EXPECT_EQ(placement.extract(words.data(), slot, part),
                  (7 * slot + 3 * part) & mask)
            << placement.name();
  }
}

TEST(PlacementTest, TilesOfAUnitLieAlike) {
  auto find = [](const char *name) {
    return findTileShift(**Placement::find(name));
  };
  EXPECT_EQ(find("int1.f16"), (TileShift{0, 2}));
  EXPECT_EQ(find("int1.bf16"), (TileShift{0, 2}));
  EXPECT_EQ(find("int2.f16"), (TileShift{0, 4}));
  EXPECT_EQ(find("int2.bf16"), (TileShift{0, 4}));
  EXPECT_EQ(find("lut1.f16"), (TileShift{1, 0}));
  EXPECT_EQ(find("lut2.bf16"), (TileShift{2, 0}));
  EXPECT_EQ(find("int4.f16"), (TileShift{0, 0}));
  EXPECT_EQ(find("int1.int8"), (TileShift{0, 30}));
  EXPECT_EQ(find("int2.int8"), (TileShift{0, 28}));
  EXPECT_EQ(find("int1.f8e4m3"), (TileShift{0, 2}));
  EXPECT_EQ(find("int2.f8e4m3"), (TileShift{0, 4}));
  // What is 64 wide; narrower units have steps of K in different tiles.
  for (const Placement &placement : Placement::all())
    EXPECT_TRUE(findTileShift(placement)) << placement.name();
  EXPECT_EQ(find("int3.f16.k32"), std::nullopt);
}

TEST(PlacementTest, TextAndBack) {
  std::string text = printPlacements(Placement::all());
  Result<std::vector<Placement>> parsed = parsePlacements(text);
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(*parsed, Placement::all());
  EXPECT_EQ(printPlacements(*parsed), text);
  // Places that are no runs, and parts that lie differently.
  std::vector<BitPlace> places = getPlaces();
  std::reverse(places.begin(), places.end());
  std::swap(places[3], places[40]);
  Placement odd = *create(places);
  EXPECT_EQ(parsePlacements(printPlacements({odd}))->front(), odd);
}

TEST(PlacementTest, TextSaysWhatRepeats) {
  std::string text = "# four steps alike\n"
                     "placement int4.f16 tiles 1 steps 1\n"
                     "0: 0.0-3\n1: 0.7-4\n\n2: 0.8-9 0.26 0.27\n"
                     "3: 0.12-15 | 0.31-28\n";
  Result<std::vector<Placement>> parsed = parsePlacements(text);
  ASSERT_TRUE(parsed) << parsed.error();
  const Placement &placement = parsed->front();
  EXPECT_EQ(placement.getPlace(13, 1, 3), (BitPlace{3, 20}));
  // Part 1 is half a word further on, and starts again at bit 0.
  EXPECT_EQ(placement.getPlace(2, 1, 3), (BitPlace{0, 11}));
  EXPECT_EQ(placement.getPlace(3, 1, 0), (BitPlace{0, 31}));
}

TEST(PlacementTest, TextThatIsNone) {
  auto getError = [](const std::string &text) {
    return parsePlacements(text).error();
  };
  std::string header = "placement int4.f16 tiles 1 steps 1\n";
  for (std::string line :
       {"0: 0.0-2", "0: 0.0-4", "0: 0.0-999999999", "0: 0.0-3 0.4", "0 0.0-3",
        "4: 0.0-3", "-1: 0.0-3", "0: 0,0-3", "0: 0.0-3x", "0: 0.0-3 |", "x"})
    EXPECT_EQ(getError(header + line + "\n"),
              "placements: line 2 is not understood: '" + line + "'");
  for (std::string line : {"placement int9.f16 tiles 1 steps 1",
                           "placement int4.f32 tiles 1 "
                           "steps 1",
                           "placement int4.f16 tiles 0 steps 1",
                           "placement int4.f16 tiles 1 "
                           "steps 3",
                           "placement int4 tiles 1 steps 1", "0: 0.0-3"})
    EXPECT_EQ(getError(line + "\n"),
              "placements: line 1 is not understood: '" + line + "'");
  EXPECT_EQ(getError(header + "0: 0.0-3\n1: 0.0-3\n2: 0.8-11\n3: 0.12-15\n"),
            "placement: bit 0 of word 0 is taken twice, in int4.f16");
}

TEST(PlacementTest, FindNamesWhatThereIs) {
  EXPECT_TRUE(Placement::find(getFormat("e3m2"), ComputeType::BF16));
  EXPECT_EQ(Placement::find("int4.f32").error(),
            "placement: packed format 5 has none named 'int4.f32'; names are "
            "int6.f16, e3m2.bf16, lut4.f16.k32, vec8-2x8.f16 and so on");
}
