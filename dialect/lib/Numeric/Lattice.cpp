//===- Lattice.cpp - Books of vectors that are computed -------------------===//
#include "lowlp/Numeric/Lattice.h"

#include <algorithm>
#include <cassert>

using namespace lowlp;

/// Twice the values of a vector.
using Doubled = std::array<int, kLatticeVector>;

std::string_view lowlp::getName(Lattice lattice) {
  return lattice == Lattice::E8P ? "e8p" : "e81b";
}

const std::vector<Lattice> &lowlp::getLattices() {
  static const std::vector<Lattice> lattices = {Lattice::E8P, Lattice::E81B};
  return lattices;
}

int lowlp::getCodeBits(Lattice lattice) {
  return lattice == Lattice::E8P ? 16 : 8;
}

static int getSquare(const Doubled &vector) {
  int square = 0;
  for (int value : vector)
    square += value * value;
  return square;
}

static int getSum(const Doubled &vector) {
  int sum = 0;
  for (int value : vector)
    sum += value;
  return sum;
}

/// Calls `take` with all vectors of these doubled values, ascending, the first
/// place slowest.
template <typename Take>
static void forAllVectors(const std::vector<int> &values, Take take) {
  std::array<size_t, kLatticeVector> digits{};
  for (bool isLast = false; !isLast;) {
    Doubled vector;
    for (int i = 0; i < kLatticeVector; ++i)
      vector[i] = values[digits[i]];
    take(vector);
    int place = kLatticeVector - 1;
    while (place >= 0 && ++digits[place] == values.size())
      digits[place--] = 0;
    isLast = place < 0;
  }
}

//===----------------------------------------------------------------------===//
// E8P
//===----------------------------------------------------------------------===//

/// The field of a word that an element has.
static constexpr std::array<int, kLatticeVector> kFieldOf = {0, 4, 1, 5,
                                                             2, 6, 3, 7};

/// The places of the three 1/2 in the last 29 vectors, whose other values are
/// 3/2.
static constexpr std::array<std::array<int, 3>, 29> kHalvesOf12 = {
    {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}, {3, 6, 7}, {3, 5, 7},
     {3, 4, 7}, {3, 5, 6}, {3, 4, 6}, {3, 4, 5}, {2, 6, 7}, {2, 5, 7},
     {2, 4, 7}, {2, 5, 6}, {2, 4, 6}, {2, 4, 5}, {1, 6, 7}, {1, 5, 7},
     {1, 4, 7}, {1, 5, 6}, {1, 4, 6}, {0, 4, 5}, {0, 6, 7}, {0, 5, 7},
     {0, 4, 7}, {0, 5, 6}, {0, 4, 6}, {0, 1, 4}, {2, 3, 7}}};

/// All that have a square of at most 10, and those 29.
static std::vector<Doubled> getAbsoluteVectors() {
  std::vector<Doubled> vectors;
  forAllVectors({1, 3, 5}, [&](const Doubled &vector) {
    if (getSquare(vector) <= 4 * 10)
      vectors.push_back(vector);
  });
  for (const std::array<int, 3> &halves : kHalvesOf12) {
    Doubled vector;
    vector.fill(3);
    for (int place : halves)
      vector[place] = 1;
    vectors.push_back(vector);
  }
  return vectors;
}

const std::array<uint32_t, 256> &lowlp::getE8PWords() {
  static const std::array<uint32_t, 256> words = [] {
    std::array<uint32_t, 256> made{};
    std::vector<Doubled> vectors = getAbsoluteVectors();
    assert(vectors.size() == made.size() && "227 vectors and 29");
    for (size_t index = 0; index < made.size(); ++index) {
      Doubled vector = vectors[index];
      if (getSum(vector) / 2 % 2)
        vector.back() = -vector.back();
      for (int i = 0; i < kLatticeVector; ++i)
        made[index] |= static_cast<uint32_t>(vector[i] + 8) << 4 * kFieldOf[i];
    }
    return made;
  }();
  return words;
}

static LatticeVector getE8PVector(uint16_t code) {
  unsigned signs = code & 0xff, parity = signs;
  for (int shift : {4, 2, 1})
    parity ^= parity >> shift;
  parity &= 1;
  signs ^= parity;
  uint32_t word = getE8PWords()[code >> 8];
  LatticeVector vector;
  for (int i = 0; i < kLatticeVector; ++i) {
    int field = kFieldOf[i];
    int doubled = static_cast<int>(word >> 4 * field & 15) - 8;
    if (signs >> field & 1)
      doubled = -doubled;
    vector[i] = static_cast<float>(doubled) / 2 + (parity ? -0.25f : 0.25f);
  }
  return vector;
}

//===----------------------------------------------------------------------===//
// E81B
//===----------------------------------------------------------------------===//

/// Points of E8, those of whole numbers first, and +-2 in one place but for the
/// last negative one.
static std::vector<Doubled> getE81BVectors() {
  std::vector<Doubled> vectors;
  auto takeShort = [&](const Doubled &vector) {
    if (getSum(vector) / 2 % 2 == 0 && getSquare(vector) <= 4 * 2)
      vectors.push_back(vector);
  };
  forAllVectors({-2, 0, 2}, takeShort);
  forAllVectors({-1, 1}, takeShort);
  for (int number = 0; number < 15; ++number) {
    Doubled vector{};
    vector[number % kLatticeVector] = number < kLatticeVector ? 4 : -4;
    vectors.push_back(vector);
  }
  return vectors;
}

LatticeVector lowlp::getLatticeVector(Lattice lattice, uint16_t code) {
  if (lattice == Lattice::E8P)
    return getE8PVector(code);
  static const std::vector<Doubled> vectors = getE81BVectors();
  assert(code < vectors.size() && "a code of e81b has 8 bits");
  LatticeVector vector;
  std::transform(vectors[code].begin(), vectors[code].end(), vector.begin(),
                 [](int doubled) { return static_cast<float>(doubled) / 2; });
  return vector;
}
