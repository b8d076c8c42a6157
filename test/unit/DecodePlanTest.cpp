//===- DecodePlanTest.cpp - Plans as data, as text, and what is proved ----===//
#include "lowlp/Decode/SequenceSearch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace lowlp;

namespace {
const Placement &find(const std::string &name) {
  return **Placement::find(name);
}

DecodePlan makePlan(const std::string &name,
                    DecodeEnding ending = DecodeEnding::Accumulators) {
  return *planDecode(find(name), ending, DecodeRates());
}

/// The first step of a kind.
DecodeStep &getStep(DecodePlan &plan, DecodeStep::Kind kind) {
  for (DecodeStep &step : plan.steps)
    if (step.kind == kind)
      return step;
  throw std::logic_error("the plan has no such step");
}
} // namespace

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

namespace {
class NumberTest : public testing::TestWithParam<ComputeType> {};
} // namespace

TEST_P(NumberTest, EveryNumberIsItsOwnNearest) {
  int bits = 32 / FragmentFamily{GetParam()}.getParts();
  for (uint32_t code = 0; code < 1u << bits; ++code) {
    double number = decodeNumber(GetParam(), code);
    if (!std::isnan(number)) {
      EXPECT_EQ(encodeNumber(GetParam(), number), code);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NumberTest,
                         testing::Values(ComputeType::F16, ComputeType::BF16,
                                         ComputeType::S8, ComputeType::E4M3),
                         [](const auto &info) { return getName(info.param); });

TEST(NumberTest, HalvesGoToEven) {
  EXPECT_EQ(encodeNumber(ComputeType::F16, 2049), 0x6800u);
  EXPECT_EQ(encodeNumber(ComputeType::F16, 2051), 0x6802u);
  EXPECT_EQ(encodeNumber(ComputeType::F16, std::ldexp(1.5, -24)), 2u);
  EXPECT_EQ(encodeNumber(ComputeType::F16, std::ldexp(0.5, -24)), 0u);
  EXPECT_EQ(encodeNumber(ComputeType::F16, 65519), 0x7bffu);
  EXPECT_EQ(encodeNumber(ComputeType::F16, -65520), 0xfc00u);
  EXPECT_EQ(encodeNumber(ComputeType::F16, -0.0), 0x8000u);
  EXPECT_EQ(encodeNumber(ComputeType::BF16, 257), 0x4380u);
  EXPECT_EQ(encodeNumber(ComputeType::BF16, 259), 0x4382u);
  EXPECT_EQ(encodeNumber(ComputeType::S8, 200), 127u);
  EXPECT_EQ(encodeNumber(ComputeType::S8, -2.5), 0xfeu);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// One step on the six words of int6.f16, the first two of which are given.
static uint32_t runStep(DecodeStep step, uint32_t a, uint32_t b) {
  DecodePlan plan;
  plan.placement = "int6.f16";
  plan.numWords = 6;
  plan.rows.resize(2);
  plan.steps = {step};
  plan.slots = {0};
  plan.results = {6};
  return plan.run(find("int6.f16"), {a, b, 0, 0, 0, 0})[0];
}

TEST(DecodePlanTest, StepsDoWhatTheInstructionsDo) {
  DecodeOperand a = DecodeOperand::reg(0), b = DecodeOperand::reg(1);
  auto imm = [](uint32_t bits) { return DecodeOperand::imm(bits); };
  using Kind = DecodeStep::Kind;
  // (a & b) | c, and c where b is 0.
  EXPECT_EQ(runStep({Kind::Lop3, {a, b, imm(0x1)}, 0xea}, 0xff, 0xf0), 0xf1u);
  EXPECT_EQ(runStep({Kind::Lop3, {a, b, imm(0x3)}, 0xe2}, 0xaa, 0xf0), 0xa3u);
  // Bytes by number; 8 and more copy the sign.
  EXPECT_EQ(
      runStep({Kind::Prmt, {a, b, imm(0)}, 0x7410}, 0x03020100, 0x17161514),
      0x17140100u);
  EXPECT_EQ(runStep({Kind::Prmt, {a, b, imm(0)}, 0x89}, 0x00008001, 0),
            0x010100ffu);
  EXPECT_EQ(runStep({Kind::Rotate, {a, imm(0), imm(0)}, 4}, 0x12345678, 0),
            0x81234567u);
  // 2 * 3 + 1 and -1 * 0.5 + 1.
  EXPECT_EQ(
      runStep({Kind::Fma, {a, b, imm(0x3c003c00)}}, 0x4000bc00, 0x42003800),
      0x47003800u);
  EXPECT_EQ(runStep({Kind::Mul32, {a, b, imm(0)}}, 0x3fc00000, 0x40000000),
            0x40400000u);
  EXPECT_EQ(runStep({Kind::Round, {a, b, imm(0)}}, 0x3f800000, 0xc0000000),
            0x3c00c000u);
}

TEST(DecodePlanTest, CostsAreCountedByPipe) {
  DecodeCost cost = makePlan("e5m0.f16").getCost();
  EXPECT_EQ(cost.convert, 16);
  EXPECT_EQ(cost.fma, 32);
  EXPECT_GE(cost.alu, 32);
  EXPECT_EQ(makePlan("int8.f16").getCost().alu, 16);
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

TEST(DecodePlanTest, TextAndBack) {
  for (const char *name : {"int4.f16", "int6.bf16", "int7.f16", "e3m2.f16",
                           "e5m0.f16", "int8.int8", "int5.f8e4m3"}) {
    DecodePlan plan = makePlan(name);
    Result<DecodePlan> parsed = DecodePlan::parse(plan.print());
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ(*parsed, plan);
    EXPECT_EQ(parsed->print(), plan.print());
  }
  DecodePlan weights = makePlan("int4.f16", DecodeEnding::Weights);
  EXPECT_EQ(*DecodePlan::parse(weights.print()), weights);
}

TEST(DecodePlanTest, BytesWithoutSignLeaveNoOffsets) {
  for (int bits = 1; bits <= 8; ++bits) {
    DecodePlan plan = makePlan("int" + std::to_string(bits) + ".int8",
                               DecodeEnding::Unsigned);
    for (const DecodePlan::Row &row : plan.rows) {
      EXPECT_EQ(row.offset, 0) << plan.print();
      EXPECT_LE(row.exponent, 8 - bits) << plan.print();
    }
    EXPECT_EQ(*DecodePlan::parse(plan.print()), plan);
  }
  Result<DecodePlan> none =
      planDecode(find("int4.f16"), DecodeEnding::Unsigned, DecodeRates());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), "decode plan: numbers of f16 are no bytes without "
                          "sign; allowed: int8");
}

TEST(DecodePlanTest, TextThatIsNone) {
  std::string header =
      "decode int4.f16 accumulators words 4\nrow 0 exponent -24\n"
      "row 1 exponent -24\n";
  for (std::string line :
       {"row 3 exponent 0", "row 2 exponent", "row 2 exponent 0 offset",
        "r5 = rotate r0, 8", "r4 = turn r0, 8", "r4 = rotate r0",
        "r4 = rotate r0, 32", "r4 = rotate r0, 0", "r4 = lop3 r0, r1, 0xc0",
        "r4 = prmt r0, r1", "r4 = fma r0, r1, r2, 0x1", "r4 = fma r-1, r1, r2",
        "slot 0 r4", "slot = r4", "decode int4.f16 accumulators words 4", "x"})
    EXPECT_EQ(DecodePlan::parse(header + line + "\n").error(),
              "decode plan: line 4 is not understood: '" + line + "'");
  for (std::string line : {"decode int4.f16 products words 4",
                           "decode int4.f16 accumulators words 0",
                           "row 0 exponent 0", "decode int4.f16 accumulators"})
    EXPECT_EQ(DecodePlan::parse(line + "\n").error(),
              "decode plan: line 1 is not understood: '" + line + "'");
  EXPECT_EQ(DecodePlan::parse("").error(),
            "decode plan: expected 'decode NAME accumulators|weights|unsigned "
            "words W' in "
            "the "
            "first line");
}

//===----------------------------------------------------------------------===//
// Proof
//===----------------------------------------------------------------------===//

namespace {
/// A plan that is right, something wrong done to it, and how the proof's
/// message ends, or part of it.
struct Seeded {
  const char *name;
  const char *placement;
  DecodeEnding ending;
  std::function<void(DecodePlan &)> damage;
  const char *message;
};
void PrintTo(const Seeded &seeded, std::ostream *out) { *out << seeded.name; }
class ProofTest : public testing::TestWithParam<Seeded> {};
} // namespace

TEST_P(ProofTest, FindsWhatIsWrong) {
  const Seeded &seeded = GetParam();
  DecodePlan plan = makePlan(seeded.placement, seeded.ending);
  ASSERT_TRUE(plan.prove(find(seeded.placement)));
  seeded.damage(plan);
  Result<bool> proof = plan.prove(find(seeded.placement));
  ASSERT_FALSE(proof);
  EXPECT_NE(proof.error().find(seeded.message), std::string::npos)
      << proof.error();
}

static const DecodeEnding kAccumulators = DecodeEnding::Accumulators;
static const DecodeEnding kWeights = DecodeEnding::Weights;
using Kind = DecodeStep::Kind;

INSTANTIATE_TEST_SUITE_P(
    Seeded, ProofTest,
    testing::Values(
        Seeded{"MaskTooWide", "int6.f16", kAccumulators,
               [](DecodePlan &plan) {
                 getStep(plan, Kind::Lop3).operands[1].value ^= 1u << 15;
               },
               "becomes"},
        Seeded{"MaskTooNarrow", "int6.f16", kAccumulators,
               [](DecodePlan &plan) {
                 uint32_t &mask = getStep(plan, Kind::Lop3).operands[1].value;
                 mask &= mask - 1;
               },
               "becomes"},
        Seeded{"WrongFunction", "e3m2.f16", kAccumulators,
               [](DecodePlan &plan) { getStep(plan, Kind::Lop3).imm = 0xfc; },
               "becomes"},
        Seeded{"WrongAmount", "int6.f16", kAccumulators,
               [](DecodePlan &plan) { ++getStep(plan, Kind::Rotate).imm; },
               "becomes"},
        Seeded{
            "WrongByte", "int8.f16", kAccumulators,
            [](DecodePlan &plan) { getStep(plan, Kind::Prmt).imm ^= 0x0001; },
            "becomes"},
        Seeded{"WrongFactor", "int6.f16", kAccumulators,
               [](DecodePlan &plan) {
                 getStep(plan, Kind::Fma).operands[1].value += 0x04000400;
               },
               "becomes"},
        Seeded{"WrongSingleFactor", "e5m0.f16", kAccumulators,
               [](DecodePlan &plan) {
                 getStep(plan, Kind::Mul32).operands[1].value += 1u << 23;
               },
               "becomes"},
        Seeded{"HalvesSwapped", "e5m0.f16", kAccumulators,
               [](DecodePlan &plan) {
                 DecodeStep &step = getStep(plan, Kind::Round);
                 std::swap(step.operands[0], step.operands[1]);
               },
               "becomes"},
        Seeded{"WrongWord", "int8.f16", kAccumulators,
               [](DecodePlan &plan) { plan.steps[0].operands[0].value ^= 1; },
               "becomes"},
        Seeded{"SlotsSwapped", "int8.f16", kAccumulators,
               [](DecodePlan &plan) {
                 std::swap(plan.results[0], plan.results[1]);
               },
               "becomes"},
        Seeded{"WrongExponent", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { ++plan.rows[1].exponent; }, "becomes"},
        Seeded{"WrongOffset", "int4.int8", kAccumulators,
               [](DecodePlan &plan) { plan.rows[0].offset += 1; }, "becomes"},
        Seeded{"ScaleForgotten", "int4.f16", kWeights,
               [](DecodePlan &plan) {
                 plan.steps.back().operands[1] = DecodeOperand::imm(0x3c003c00);
               },
               "becomes"},
        Seeded{"ZeroOfAnotherUnit", "int4.bf16", kWeights,
               [](DecodePlan &plan) {
                 for (DecodeStep &step : plan.steps)
                   if (step.operands[2] ==
                       DecodeOperand::reg(plan.numWords + 1))
                     step.operands[2] = DecodeOperand::reg(plan.numWords);
               },
               "becomes"},
        Seeded{"ReadsWhatIsNotThere", "int4.f16", kAccumulators,
               [](DecodePlan &plan) {
                 plan.steps[0].operands[0] = DecodeOperand::reg(9);
               },
               "step 0 reads register 9, which is not yet there"},
        Seeded{"NoRegister", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { plan.results.pop_back(); },
               "expected a register for each slot, got 15 for 16"},
        Seeded{"UnknownRegister", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { plan.results[2] = 1000; },
               "slot 2 has the register 1000, which does not exist"},
        Seeded{"UnknownSlot", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { plan.slots[2] = 16; },
               "slot 16 is outside of 0..15"},
        Seeded{"RowsMissing", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { plan.rows.pop_back(); },
               "expected 2 rows of slots, got 1"},
        Seeded{"WrongWords", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { plan.numWords = 8; },
               "expected 4 words, got 8"},
        Seeded{"OtherPlacement", "int4.f16", kAccumulators,
               [](DecodePlan &plan) { plan.placement = "int4.bf16"; },
               "plan for int4.bf16: the placement given is int4.f16"}),
    [](const auto &info) { return info.param.name; });
