//===- DecodePlan.h - How packed words become fragments ---------*- C++ -*-===//
//
// A decode plan is a straight line of instructions from a lane's words of a
// unit to the registers of its A fragments. All registers have 32 bits:
//
//   words of the unit | parameters of the ending | results of the steps
//   0 .. W - 1          W .. W + P - 1             W + P ..
//
// The plan is data: it is searched for (SequenceSearch.h), proved by running it
// here on every code, printed into the IR, and carried out step by step by the
// conversion to the thread level.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_DECODE_DECODEPLAN_H
#define LOWLP_DECODE_DECODEPLAN_H

#include "lowlp/Decode/Placement.h"

#include <array>
#include <cmath>

namespace lowlp {

/// A register, or an immediate of 32 bits.
struct DecodeOperand {
  bool isImmediate;
  uint32_t value;

  static DecodeOperand reg(int index) {
    return {false, static_cast<uint32_t>(index)};
  }
  static DecodeOperand imm(uint32_t value) { return {true, value}; }
  bool operator==(const DecodeOperand &other) const {
    return isImmediate == other.isImmediate && value == other.value;
  }
};

/// One instruction of a decode plan.
struct DecodeStep {
  enum class Kind {
    /// Bit by bit the entry `imm` >> (4 a + 2 b + c) of three operands
    /// (PTX ISA, `lop3.b32`).
    Lop3,
    /// Four of the eight bytes of a (low) and b, by the nibbles of `imm` (PTX
    /// ISA, `prmt.b32` in its default mode).
    Prmt,
    /// a, rotated to the right by `imm` bits, 1 to 31 (PTX ISA,
    /// `shf.r.wrap.b32`).
    Rotate,
    /// a * b + c on two halves of the compute type, rounded to nearest even
    /// (PTX ISA, `fma.rn.f16x2`, `fma.rn.bf16x2`).
    Fma,
    /// a * b in f32 (PTX ISA, `mul.rn.f32`).
    Mul32,
    /// The f32 numbers a and b as two halves of the compute type, b the low one
    /// (PTX ISA, `cvt.rn.f16x2.f32`).
    Round,
    /// The low 32 bits of a * b + c (PTX ISA, `mad.lo.u32`).
    Mad
  };
  Kind kind;
  std::array<DecodeOperand, 3> operands = {
      DecodeOperand::imm(0), DecodeOperand::imm(0), DecodeOperand::imm(0)};
  uint32_t imm = 0;

  /// Operands that the kind has: 1 to 3.
  int getNumOperands() const;
  bool operator==(const DecodeStep &other) const {
    return kind == other.kind && operands == other.operands && imm == other.imm;
  }
};

/// Where scales go (DESIGN: the two endings of a plan).
enum class DecodeEnding {
  /// On accumulators: registers hold `(value + offset) * 2^exponent` of their
  /// row.
  Accumulators,
  /// On weights: registers hold `scale * (value - zero)`; the difference is
  /// rounded where it is no number of the compute type, and then the product.
  /// For each row of slots (2 t + r) there are two parameters, two halves
  /// alike:
  /// the scale, and minus the zero.
  Weights,
  /// On accumulators, of integers in bytes without sign: registers hold
  /// `value * 2^exponent` of their row, from 0 to 255. No offset is left,
  /// whatever bits of its byte a code takes.
  Unsigned
};

/// What a plan costs for all that it decodes, in instructions of a warp.
struct DecodeCost {
  /// LOP3, PRMT, rotations.
  int alu = 0;
  /// Products and sums of halves, of f32 and of words.
  int fma = 0;
  /// Roundings of f32 to halves.
  int convert = 0;
};

class DecodePlan {
public:
  /// What was done to the values of a row of slots, for `Accumulators` and
  /// `Unsigned`.
  struct Row {
    int exponent = 0;
    double offset = 0;
    /// The numbers are the negative ones.
    bool isNegated = false;
    bool operator==(const Row &other) const {
      return exponent == other.exponent && offset == other.offset &&
             isNegated == other.isNegated;
    }
    /// What the sum of value and offset is multiplied by.
    double getFactor() const {
      return std::ldexp(isNegated ? -1.0 : 1.0, exponent);
    }
  };

  /// Name of the placement that it decodes.
  std::string placement;
  DecodeEnding ending = DecodeEnding::Accumulators;
  /// Words that it reads: those of the placement's unit.
  int numWords = 0;
  std::vector<DecodeStep> steps;
  /// The slots that are decoded, ascending, and the register of each.
  std::vector<int> slots;
  std::vector<int> results;
  /// By row of slots; for `Weights` all zero.
  std::vector<Row> rows;

  /// The parameters' count: 0, or two for each row of slots.
  int getNumParameters() const {
    return ending == DecodeEnding::Weights ? 2 * static_cast<int>(rows.size())
                                           : 0;
  }
  /// The register of the first step.
  int getFirstResult() const { return numWords + getNumParameters(); }
  DecodeCost getCost() const;
  /// Pairs of weights that it decodes, or quadruples.
  int getNumRegisters() const { return static_cast<int>(slots.size()); }

  /// Runs the steps; the result is the registers of `slots`.
  std::vector<uint32_t> run(const Placement &placement,
                            const std::vector<uint32_t> &words,
                            const std::vector<uint32_t> &parameters = {}) const;

  /// Fails unless the plan fits its placement, which exists: registers are read
  /// after they are written, and slots and rows are the placement's.
  Result<bool> check() const;

  /// Runs every code at every place, with several contents of all other bits,
  /// and fails with the first register that is not what the plan promises. For
  /// `Weights` over several scales and zeros.
  Result<bool> prove(const Placement &placement) const;

  /// The plan as text that `parse` reads back.
  std::string print() const;
  /// Fails for text that is no plan, naming the line.
  static Result<DecodePlan> parse(std::string_view text);

  /// A hash that agrees with ==.
  size_t hash() const;
  bool operator==(const DecodePlan &other) const {
    return placement == other.placement && ending == other.ending &&
           numWords == other.numWords && steps == other.steps &&
           slots == other.slots && results == other.results &&
           rows == other.rows;
  }
};

//===----------------------------------------------------------------------===//
// Numbers of the compute types
//===----------------------------------------------------------------------===//

/// The number that the low bits of `bits` are.
double decodeNumber(ComputeType compute, uint32_t bits);
/// The bits of the nearest number, of two equally near ones the even one.
uint32_t encodeNumber(ComputeType compute, double value);

} // namespace lowlp

#endif // LOWLP_DECODE_DECODEPLAN_H
