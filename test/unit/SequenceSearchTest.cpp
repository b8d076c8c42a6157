//===- SequenceSearchTest.cpp - Plans of all placements -------------------===//
#include "lowlp/Decode/SequenceSearch.h"
#include "lowlp/Decode/PackedTile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace lowlp;

namespace {
const Placement &find(const std::string &name) {
  return **Placement::find(name);
}

bool isTable(const Placement &placement) {
  return placement.getFormat().kind == CodeFormat::Kind::Table;
}

/// The endings that the compute type has.
std::vector<DecodeEnding> getEndings(const Placement &placement) {
  if (placement.getNumParts() == 2)
    return {DecodeEnding::Accumulators, DecodeEnding::Weights};
  return {DecodeEnding::Accumulators};
}

/// The slots of each step, and those of each tile of 16 rows.
std::vector<std::vector<int>> getSubsets(const Placement &placement) {
  std::vector<std::vector<int>> subsets(placement.getNumSteps() +
                                        placement.getNumRowTiles());
  for (int slot = 0; slot < placement.getNumSlots(); ++slot) {
    int step = slot / 4 % placement.getNumSteps();
    subsets[step].push_back(slot);
    int tile = placement.getRowOfSlot(slot) / 2;
    subsets[placement.getNumSteps() + tile].push_back(slot);
  }
  return subsets;
}

/// A placement with every bit anywhere.
Placement scatterBits(const std::string &name, int rowTiles) {
  const Placement &like = find(name);
  std::vector<BitPlace> places;
  for (int word = 0; word < like.getFormat().bits * rowTiles; ++word)
    for (int bit = 0; bit < 32; ++bit)
      places.push_back({word, bit});
  std::mt19937 random(rowTiles);
  std::shuffle(places.begin(), places.end(), random);
  return *Placement::create(like.getFormat(), like.getCompute(), rowTiles,
                            std::move(places));
}
/// A placement whose parts lie alike, and all else anywhere.
Placement scatterAlike(const Placement &like, int rowTiles,
                       std::mt19937 &random) {
  int parts = like.getNumParts(), stride = 32 / parts;
  std::vector<BitPlace> firsts, places;
  for (int word = 0; word < like.getFormat().bits * rowTiles; ++word)
    for (int bit = 0; bit < stride; ++bit)
      firsts.push_back(
          {word, bit + stride * static_cast<int>(random() % parts)});
  std::shuffle(firsts.begin(), firsts.end(), random);
  for (size_t first = 0; first < firsts.size(); first += like.getFormat().bits)
    for (int part = 0; part < parts; ++part)
      for (int bit = 0; bit < like.getFormat().bits; ++bit)
        places.push_back({firsts[first + bit].word,
                          (firsts[first + bit].bit + part * stride) % 32});
  return *Placement::create(like.getFormat(), like.getCompute(), rowTiles,
                            std::move(places));
}
} // namespace

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

namespace {
/// At most this many instructions of the ALU for each register.
struct Bar {
  const char *placement;
  double alu;
};
void PrintTo(const Bar &bar, std::ostream *out) { *out << bar.placement; }
class DecodeCostTest : public testing::TestWithParam<Bar> {};
} // namespace

TEST_P(DecodeCostTest, StaysBelowTheBar) {
  DecodePlan plan = *planDecode(find(GetParam().placement),
                                DecodeEnding::Accumulators, DecodeRates());
  EXPECT_LE(plan.getCost().alu, GetParam().alu * plan.getNumRegisters());
  EXPECT_EQ(plan.getCost().convert, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Accumulators, DecodeCostTest,
    testing::Values(
        Bar{"int1.f16", 1.07}, Bar{"int2.f16", 1.13}, Bar{"int3.f16", 1.32},
        Bar{"int4.f16", 1.0}, Bar{"int5.f16", 1.5}, Bar{"int6.f16", 1.5},
        Bar{"int7.f16", 1.82}, Bar{"int8.f16", 1.0}, Bar{"int1.bf16", 1.07},
        Bar{"int2.bf16", 1.13}, Bar{"int3.bf16", 1.5}, Bar{"int4.bf16", 1.25},
        Bar{"int8.bf16", 1.0}, Bar{"int1.int8", 1.0}, Bar{"int2.int8", 1.0},
        Bar{"int4.int8", 1.0}, Bar{"int8.int8", 1.0}, Bar{"e2m1.f16", 2.25},
        Bar{"e3m2.f16", 2.125}, Bar{"e2m3.f16", 2.9}, Bar{"e4m3.f16", 2.5},
        Bar{"e5m2.f16", 1.0}, Bar{"e4m3.f8e4m3", 1.0}),
    [](const auto &info) {
      std::string name = info.param.placement;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(SequenceSearchTest, FloatsInPlaceTakeAtMostThree) {
  for (const Placement &placement : Placement::all()) {
    const CodeFormat &format = placement.getFormat();
    if (format.kind != CodeFormat::Kind::Float || format.exponentBits > 4)
      continue;
    DecodePlan plan =
        *planDecode(placement, DecodeEnding::Accumulators, DecodeRates());
    EXPECT_LE(plan.getCost().alu, 3 * plan.getNumRegisters())
        << placement.name();
  }
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

namespace {
class PlanTest : public testing::TestWithParam<std::string> {};

/// All but tables and floats whose exponents f16 does not have.
std::vector<std::string> getNames() {
  std::vector<std::string> names;
  for (const Placement &placement : Placement::all()) {
    bool isTooWide = placement.getCompute() == ComputeType::F16 &&
                     placement.getFormat().exponentBits > 5;
    if (!isTable(placement) && !isTooWide)
      names.push_back(placement.name());
  }
  return names;
}
} // namespace

/// `planDecode` returns nothing that is not proved, also of part of a unit;
/// what part it is changes no row.
TEST_P(PlanTest, EverySubsetIsProved) {
  const Placement &placement = find(GetParam());
  for (DecodeEnding ending : getEndings(placement)) {
    Result<DecodePlan> all = planDecode(placement, ending, DecodeRates());
    ASSERT_TRUE(all) << all.error();
    EXPECT_EQ(all->getNumRegisters(), placement.getNumSlots());
    for (const std::vector<int> &slots : getSubsets(placement)) {
      Result<DecodePlan> some =
          planDecode(placement, ending, DecodeRates(), slots);
      ASSERT_TRUE(some) << some.error();
      EXPECT_EQ(some->slots, slots);
      EXPECT_EQ(some->rows, all->rows);
      EXPECT_LE(some->steps.size(), all->steps.size());
    }
  }
}

/// The shape of a unit changes which rows weights are of, and no instruction.
TEST_P(PlanTest, UnitsOfAllShapesTakeTheSameSteps) {
  const Placement &wide = find(GetParam());
  Placement narrow = wide.withUnitK(std::max(16, wide.getFamily().getStepK()));
  for (DecodeEnding ending : getEndings(wide)) {
    Result<DecodePlan> plan = planDecode(narrow, ending, DecodeRates());
    ASSERT_TRUE(plan) << plan.error();
    EXPECT_EQ(plan->rows.size(), 2u * narrow.getNumRowTiles());
    if (ending == DecodeEnding::Accumulators)
      EXPECT_EQ(plan->steps, planDecode(wide, ending, DecodeRates())->steps);
  }
}

/// Accumulators in f32 lose nothing to the units that the numbers are in.
TEST_P(PlanTest, RowsAreInRange) {
  const Placement &placement = find(GetParam());
  DecodePlan plan =
      *planDecode(placement, DecodeEnding::Accumulators, DecodeRates());
  for (const DecodePlan::Row &row : plan.rows) {
    EXPECT_GE(row.exponent, -24);
    EXPECT_LE(row.exponent, 20);
    EXPECT_LE(std::abs(row.offset), 128);
  }
}

/// Pieces, rotations and merged words that no search would make.
TEST_P(PlanTest, PlansWhateverLiesAnyhow) {
  std::mt19937 random(find(GetParam()).getNumWords());
  for (int rowTiles : {1, 2}) {
    Placement placement = scatterAlike(find(GetParam()), rowTiles, random);
    for (DecodeEnding ending : getEndings(placement)) {
      Result<DecodePlan> plan = planDecode(placement, ending, DecodeRates());
      EXPECT_TRUE(plan) << plan.error();
    }
  }
}

static std::string
getTestName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PlanTest, testing::ValuesIn(getNames()),
                         getTestName);

TEST(SequenceSearchTest, AnyPlacementHasAPlan) {
  for (const char *name :
       {"int1.f16", "int3.bf16", "int4.f16", "int6.int8", "int5.f8e4m3",
        "e1m2.f16", "e2m1.bf16", "e3m2.f16", "e5m0.f16", "e2m1.f8e4m3"})
    for (int rowTiles : {1, 2}) {
      Placement placement = scatterBits(name, rowTiles);
      for (DecodeEnding ending : getEndings(placement)) {
        Result<DecodePlan> plan = planDecode(placement, ending, DecodeRates());
        EXPECT_TRUE(plan) << plan.error();
      }
    }
}

TEST(SequenceSearchTest, RatesChooseThePipe) {
  // With products at twice the price of the rest, none is taken for a mask.
  DecodePlan cheap =
      *planDecode(find("int4.f16"), DecodeEnding::Accumulators, DecodeRates());
  DecodePlan dear = *planDecode(find("int4.f16"), DecodeEnding::Accumulators,
                                DecodeRates{1, 2, 8});
  EXPECT_GT(cheap.getCost().fma, 0);
  EXPECT_EQ(dear.getCost().fma, 0);
  EXPECT_GT(dear.getCost().alu, cheap.getCost().alu);
}

TEST(SequenceSearchTest, OnePlanForEachTileOfAUnit) {
  for (const char *name :
       {"int1.f16", "int1.bf16", "int2.f16", "int2.bf16", "int1.int8",
        "int2.int8", "int1.f8e4m3", "int2.f8e4m3"}) {
    const Placement &placement = find(name);
    TileShift shift = *findTileShift(placement);
    ComputeType compute = placement.getCompute();
    DecodePlan plan =
        *planTile(placement, DecodeEnding::Accumulators, DecodeRates());
    EXPECT_EQ(plan.slots, getSlotsOfTile(placement, 0));
    std::vector<uint32_t> words;
    for (int word = 0; word < placement.getNumWords(); ++word)
      words.push_back(0x9e3779b9u * (word + 1));
    for (int tile = 0; tile < placement.getNumRowTiles(); ++tile) {
      std::vector<uint32_t> moved = words;
      int amount = tile * shift.bits % 32;
      for (uint32_t &word : moved)
        word = word >> amount |
               static_cast<uint32_t>(uint64_t{word} << (32 - amount));
      std::vector<uint32_t> found = plan.run(placement, moved);
      std::vector<int> slots = getSlotsOfTile(placement, tile);
      for (size_t i = 0; i < slots.size(); ++i)
        for (int part = 0; part < placement.getNumParts(); ++part) {
          uint8_t code = placement.extract(words.data(), slots[i], part);
          const DecodePlan::Row &row =
              plan.rows[placement.getRowOfSlot(slots[i])];
          int bits = 32 / placement.getNumParts();
          uint32_t number = found[i] >> bits * part & ((1u << bits) - 1);
          EXPECT_EQ(decodeNumber(compute, number),
                    (*placement.getFormat().value(code) + row.offset) *
                        row.getFactor())
              << name << ", slot " << slots[i];
        }
    }
  }
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(SequenceSearchTest, ErrorsNameWhatIsAllowed) {
  auto getError = [](const std::string &name, DecodeEnding ending,
                     std::vector<int> slots) {
    return planDecode(find(name), ending, DecodeRates(), std::move(slots))
        .error();
  };
  EXPECT_EQ(getError("lut4.f16", DecodeEnding::Accumulators, {}),
            "decode plan: codes of lut4 are looked up in a table, not "
            "computed");
  EXPECT_EQ(getError("e6m1.f16", DecodeEnding::Accumulators, {}),
            "decode plan: f16 does not hold the values of e6m1: it has 5 bits "
            "of exponent");
  EXPECT_EQ(
      getError("int4.int8", DecodeEnding::Weights, {}),
      "decode plan: scales go on accumulators with int8, which has no products "
      "of pairs; allowed: f16, bf16");
  EXPECT_EQ(getError("int4.f16", DecodeEnding::Accumulators, {3, 16}),
            "decode plan: slot 16 of int4.f16 is outside of 0..15");
  EXPECT_EQ(getError("int4.f16", DecodeEnding::Accumulators, {-1}),
            "decode plan: slot -1 of int4.f16 is outside of 0..15");
}

TEST(SequenceSearchTest, FormatsThatAComputeTypeDoesNotHold) {
  auto getError = [](const std::string &name, ComputeType compute) {
    Placement placement =
        Placement::contiguous(*CodeFormat::parse(name), compute, 1);
    return planDecode(placement, DecodeEnding::Accumulators, DecodeRates())
        .error();
  };
  EXPECT_EQ(getError("int6", ComputeType::E4M3),
            "decode plan: f8e4m3 does not hold the values of int6: it has 4 "
            "significant bits");
  EXPECT_EQ(getError("e3m4", ComputeType::E4M3),
            "decode plan: f8e4m3 does not hold the values of e3m4: it has 3 "
            "bits of mantissa");
  EXPECT_EQ(getError("e3m4", ComputeType::S8),
            "decode plan: int8 does not hold the values of e3m4: floats are "
            "not integers");
}
