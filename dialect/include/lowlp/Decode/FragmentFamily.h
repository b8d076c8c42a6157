//===- FragmentFamily.h - What packed words become fragments of -*- C++ -*-===//
//
// Weights are packed for one kind of operand of one kind of matrix instruction,
// in units of one shape: the family says which. Two families hold a weight at
// different places, so words belong to one of them.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_DECODE_FRAGMENTFAMILY_H
#define LOWLP_DECODE_FRAGMENTFAMILY_H

#include "lowlp/Layout/Result.h"

#include <string>
#include <string_view>

namespace lowlp {

/// The types that tensor cores multiply.
enum class ComputeType { F16, BF16, S8, E4M3, B1 };

/// f16, bf16, int8, f8e4m3 or b1.
std::string getName(ComputeType compute);
Result<ComputeType> parseComputeType(std::string_view name);

struct FragmentFamily {
  /// Which operand of the product the weights are: A in registers, of `mma` and
  /// `wgmma` (PTX ISA, "Matrix Fragments for mma.m16n8k16", "k32" and "k256").
  enum class Operand { A };

  ComputeType compute;
  Operand operand = Operand::A;
  /// Weights of a row in a unit, 64, or 32 or 16 for rows that are no multiple
  /// of it; a step where that has more. Of vectors up to 1024.
  int unitK = maxUnitK;
  /// Rows of a fragment; a unit has 1 to 16 times as many.
  static constexpr int rows = 16;
  /// Lanes that hold a fragment.
  static constexpr int lanes = 32;
  /// Lanes that hold a row of a fragment.
  static constexpr int rowLanes = 4;
  /// Weights of a row in the widest unit of codes of one weight, unless a step
  /// is wider; names leave it out.
  static constexpr int maxUnitK = 64;

  /// Weights that share one register of 32 bits: 2, 4 or 32.
  constexpr int getParts() const {
    switch (compute) {
    case ComputeType::F16:
    case ComputeType::BF16:
      return 2;
    case ComputeType::S8:
    case ComputeType::E4M3:
      return 4;
    case ComputeType::B1:
      return 32;
    }
    return 0;
  }
  /// Weights of a row that an instruction takes.
  constexpr int getStepK() const { return 8 * getParts(); }
  /// Weights of a row in a unit: one step or several.
  constexpr int getUnitK() const {
    return getStepK() > unitK ? getStepK() : unitK;
  }
  /// Those of the widest unit of codes of one weight.
  constexpr int getWidestUnitK() const {
    return getStepK() > maxUnitK ? getStepK() : maxUnitK;
  }
  constexpr int getNumSteps() const { return getUnitK() / getStepK(); }
  /// Whether `lowlp.decode` makes fragments of it; bits are multiplied as they
  /// lie.
  constexpr bool isDecoded() const { return compute != ComputeType::B1; }
  /// Whether it has registers of two halves: those of f16 and bf16.
  constexpr bool isOfHalves() const {
    return compute == ComputeType::F16 || compute == ComputeType::BF16;
  }
  /// f16, f16.k32, f16.k128: the compute type, and the weights of a row in a
  /// unit where these are not 64. Units of b1 are 256 wide.
  std::string name() const;
  static Result<FragmentFamily> parse(std::string_view name);

  constexpr bool operator==(const FragmentFamily &other) const {
    return compute == other.compute && operand == other.operand &&
           getUnitK() == other.getUnitK();
  }
};

} // namespace lowlp

#endif // LOWLP_DECODE_FRAGMENTFAMILY_H
