//===- WholeZerosTest.cpp - Plans for zero points that are integers -------===//
#include "lowlp/Decode/SequenceSearch.h"

#include <gtest/gtest.h>

using namespace lowlp;

TEST(WholeZerosTest, EveryPlanOfHalves) {
  for (const Placement &placement : Placement::all()) {
    if (placement.getNumParts() != 2)
      continue;
    Result<DecodePlan> plan =
        planDecode(placement, DecodeEnding::Weights, DecodeRates());
    if (!plan)
      continue;
    Result<DecodePlan> whole = useWholeZeros(*plan, placement);
    ASSERT_TRUE(whole) << whole.error();
    DecodeCost before = plan->getCost(), after = whole->getCost();
    EXPECT_LE(after.alu + after.fma, before.alu + before.fma)
        << placement.name();
    EXPECT_EQ(after.convert, before.convert);
  }
}

TEST(WholeZerosTest, ProductsLess) {
  // By 16 registers: a mask, a product and sum, a product; and bytes, and a
  // zero for each of the two rows.
  const Placement &placement = **Placement::find("int4.f16");
  DecodePlan plan =
      *planDecode(placement, DecodeEnding::Weights, DecodeRates());
  ASSERT_EQ(plan.getCost().alu, 16);
  ASSERT_EQ(plan.getCost().fma, 52);
  DecodePlan whole = *useWholeZeros(plan, placement);
  EXPECT_EQ(whole.getCost().alu, 20);
  EXPECT_EQ(whole.getCost().fma, 34);
  // Bytes get their exponent as they are picked.
  const Placement &bytes = **Placement::find("int8.f16");
  plan = *planDecode(bytes, DecodeEnding::Weights, DecodeRates());
  whole = *useWholeZeros(plan, bytes);
  EXPECT_EQ(whole.getCost().alu, 16);
  EXPECT_EQ(whole.getCost().fma, 34);
  // Floats have no integers to shift.
  const Placement &floats = **Placement::find("e2m1.f16");
  DecodePlan other = *planDecode(floats, DecodeEnding::Weights, DecodeRates());
  EXPECT_EQ(*useWholeZeros(other, floats), other);
}

TEST(WholeZerosTest, ScalesOnAccumulatorsHaveNone) {
  const Placement &placement = **Placement::find("int4.f16");
  DecodePlan plan =
      *planDecode(placement, DecodeEnding::Accumulators, DecodeRates());
  EXPECT_EQ(useWholeZeros(plan, placement).error(),
            "decode plan: zeros are those of scales on weights");
}
