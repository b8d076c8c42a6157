//===- OffsetTest.cpp - Plans whose numbers have another offset -----------===//
#include "lowlp/Decode/SequenceSearch.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace lowlp;

namespace {
const Placement &find(const std::string &name) {
  return **Placement::find(name);
}

DecodePlan makePlan(const std::string &name,
                    DecodeEnding ending = DecodeEnding::Accumulators) {
  return *planDecode(find(name), ending, DecodeRates());
}
} // namespace

TEST(OffsetTest, EveryPlanOfHalvesTakesTheOffsetsOfItsTypes) {
  for (const Placement &placement : Placement::all()) {
    Result<DecodePlan> plan =
        planDecode(placement, DecodeEnding::Accumulators, DecodeRates());
    if (!plan || placement.getNumParts() != 2)
      continue;
    const CodeFormat &format = placement.getFormat();
    std::vector<double> offsets = {0};
    if (format.kind == CodeFormat::Kind::Integer)
      offsets.push_back(-std::ldexp(1.0, format.bits - 1));
    for (double offset : offsets) {
      Result<DecodePlan> moved = setOffset(*plan, placement, offset);
      ASSERT_TRUE(moved) << moved.error();
      EXPECT_TRUE(moved->prove(placement));
      DecodeCost before = plan->getCost(), after = moved->getCost();
      EXPECT_EQ(after.alu, before.alu);
      EXPECT_LE(after.fma, before.fma + plan->getNumRegisters());
      for (size_t row = 0; row < plan->rows.size(); ++row) {
        EXPECT_EQ(moved->rows[row].offset, offset);
        EXPECT_EQ(moved->rows[row].exponent, plan->rows[row].exponent);
      }
    }
  }
}

TEST(OffsetTest, ProductsTakeItAlong) {
  // Each of the 16 registers ends in a product already.
  DecodePlan plan = makePlan("int8.bf16");
  ASSERT_EQ(plan.getCost().fma, 16);
  EXPECT_EQ(setOffset(plan, find("int8.bf16"), -128)->getCost().fma, 16);
  // Four of 16 do, and what they add to is a byte, not a product.
  plan = makePlan("int4.f16");
  ASSERT_EQ(plan.getCost().fma, 4);
  EXPECT_EQ(setOffset(plan, find("int4.f16"), -8)->getCost().fma, 20);
  EXPECT_EQ(*setOffset(plan, find("int4.f16"), 0), plan);
}

TEST(OffsetTest, BitsThatStandForNothingAndMinusOneHaveNone) {
  for (const char *name : {"int1.f16", "int1.bf16"}) {
    DecodePlan plan = makePlan(name);
    Result<DecodePlan> other = complement(plan, find(name));
    ASSERT_TRUE(other) << other.error();
    EXPECT_TRUE(other->prove(find(name)));
    EXPECT_EQ(other->getCost().alu, plan.getCost().alu);
    EXPECT_EQ(other->getCost().fma, plan.getCost().fma);
    // What is above the bits of bf16 numbers stays, with the other sign.
    EXPECT_EQ(other->rows[0].offset, -1 - plan.rows[0].offset);
    EXPECT_TRUE(other->rows[0].isNegated);
    EXPECT_EQ(*DecodePlan::parse(other->print()), *other);
    // Not what a plan without the complement would make.
    DecodePlan wrong = *other;
    wrong.rows[0].isNegated = false;
    EXPECT_FALSE(wrong.prove(find(name)));
  }
  EXPECT_FALSE(complement(makePlan("int2.f16"), find("int2.f16")));
}

TEST(OffsetTest, BytesOfFloatsHoldSigns) {
  for (const char *name : {"int2.f8e4m3", "int3.f8e4m3", "int4.f8e4m3"}) {
    const Placement &placement = find(name);
    DecodePlan plan = makePlan(name);
    Result<DecodePlan> other = useSigns(plan, placement);
    ASSERT_TRUE(other) << other.error();
    EXPECT_TRUE(other->prove(placement));
    EXPECT_EQ(other->getCost().alu,
              plan.getCost().alu + 3 * plan.getNumRegisters());
    EXPECT_EQ(other->getCost().fma,
              plan.getCost().fma + 2 * plan.getNumRegisters());
    double half = std::ldexp(1.0, placement.getFormat().bits - 1);
    for (const DecodePlan::Row &row : other->rows)
      EXPECT_EQ(row.offset, -half);
    EXPECT_EQ(*DecodePlan::parse(other->print()), *other);
    // Nothing else becomes of the codes.
    DecodePlan wrong = *other;
    wrong.rows[0].offset = 0;
    EXPECT_FALSE(wrong.prove(placement));
  }
  for (const char *name : {"int4.f16", "int1.f8e4m3"})
    EXPECT_EQ(useSigns(makePlan(name), find(name)).error(),
              "decode plan: signs are taken of integers of 2 to 5 bits in "
              "f8e4m3 whose scales are on accumulators");
  EXPECT_FALSE(useSigns(makePlan("e2m1.f8e4m3"), find("e2m1.f8e4m3")));
}

TEST(OffsetTest, WhatCannotBe) {
  const Placement &placement = find("int4.f16");
  EXPECT_EQ(setOffset(makePlan("int4.f16", DecodeEnding::Weights), placement, 0)
                .error(),
            "decode plan: offsets are taken off numbers of f16 and bf16 whose "
            "scales are on accumulators");
  EXPECT_EQ(
      setOffset(makePlan("int4.f16"), placement, 0.125).error().substr(0, 32),
      "decode plan: an offset of 0.1250");
  // A number, but the differences from it need 12 bits.
  EXPECT_NE(
      setOffset(makePlan("int4.f16"), placement, 4094).error().find("becomes"),
      std::string::npos);
}
