//===- LatticeTest.cpp - Books of vectors that are computed ---------------===//
#include "lowlp/Numeric/Lattice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace lowlp;

/// Whether a vector is in E8: all values whole or all half numbers, of an even
/// sum.
static bool isInE8(const LatticeVector &vector, float shift) {
  float sum = 0;
  int halves = 0;
  for (float value : vector) {
    float moved = 2 * (value - shift);
    if (moved != std::round(moved))
      return false;
    halves += std::lround(std::abs(moved)) % 2;
    sum += value - shift;
  }
  return halves % 8 == 0 && std::fmod(sum, 2.0f) == 0.0f;
}

// The 65536 points of E8 shifted by 1/4 are all different (QuIP#, section 4).
TEST(Lattice, E8PHasDifferentPointsOfTheShiftedLattice) {
  std::set<LatticeVector> found;
  for (int code = 0; code < 1 << 16; ++code) {
    LatticeVector vector =
        getLatticeVector(Lattice::E8P, static_cast<uint16_t>(code));
    // 1/4 more or less are the same shift of E8, which has (1/2, ..., 1/2).
    EXPECT_TRUE(isInE8(vector, 0.25f)) << code;
    found.insert(vector);
  }
  EXPECT_EQ(found.size(), 1u << 16);
}

TEST(Lattice, E81BHasTheShortestPoints) {
  std::set<LatticeVector> found;
  int numOfSquare[5] = {};
  for (int code = 0; code < 1 << 8; ++code) {
    LatticeVector vector =
        getLatticeVector(Lattice::E81B, static_cast<uint16_t>(code));
    EXPECT_TRUE(isInE8(vector, 0)) << code;
    float square = 0;
    for (float value : vector)
      square += value * value;
    ++numOfSquare[std::lround(square)];
    found.insert(vector);
  }
  EXPECT_EQ(found.size(), 256u);
  // The roots of E8 are 240.
  EXPECT_EQ(numOfSquare[0], 1);
  EXPECT_EQ(numOfSquare[2], 240);
  EXPECT_EQ(numOfSquare[4], 15);
}

// Codes by hand from the header's formula. The first table vector is all 1/2,
// of sum 4; the second has a last value of 3/2, and so an odd sum.
TEST(Lattice, CodesByHand) {
  const float h = 0.75f, l = -0.25f;
  EXPECT_EQ(getLatticeVector(Lattice::E8P, 0),
            (LatticeVector{h, h, h, h, h, h, h, h}));
  // The signs of elements 2 (bit 1) and 1 (bit 4).
  EXPECT_EQ(getLatticeVector(Lattice::E8P, 0b10010),
            (LatticeVector{h, l, l, h, h, h, h, h}));
  // One bit: parity 1, the lowest bit flips with it, and 1/4 is taken off.
  EXPECT_EQ(getLatticeVector(Lattice::E8P, 0b00001),
            (LatticeVector{-l, -l, -l, -l, -l, -l, -l, -l}));
  EXPECT_EQ(getLatticeVector(Lattice::E8P, 0x100)[7], -1.25f);
  EXPECT_EQ(getE8PWords()[0], 0x99999999u);
  EXPECT_EQ(getLatticeVector(Lattice::E81B, 0),
            (LatticeVector{-1, -1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(getLatticeVector(Lattice::E81B, 255)[6], -2.0f);
}
