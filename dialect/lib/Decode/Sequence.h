//===- Sequence.h - Steps of a plan while it is searched for ----*- C++ -*-===//
//
// A list of steps that holds no step twice. Registers are numbered as in a plan
// (DecodePlan.h).
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_DECODE_SEQUENCE_H
#define LOWLP_LIB_DECODE_SEQUENCE_H

#include "lowlp/Decode/SequenceSearch.h"

#include <map>
#include <tuple>
#include <vector>

namespace lowlp {

/// Tables of LOP3: a & b; (a & b) | c; (a & b) ^ c; (a & b) | (c & ~b).
inline constexpr uint32_t kLop3And = 0xc0;
inline constexpr uint32_t kLop3AndOr = 0xea;
inline constexpr uint32_t kLop3AndXor = 0x6a;
inline constexpr uint32_t kLop3Select = 0xe2;

class Sequence {
public:
  Sequence(ComputeType compute, int firstResult)
      : compute(compute), firstResult(firstResult) {}

  /// The register that holds the step's result.
  int add(const DecodeStep &step);

  int lop3(int a, uint32_t b, DecodeOperand c, uint32_t table);
  int mask(int a, uint32_t bits) {
    return lop3(a, bits, DecodeOperand::imm(0), kLop3And);
  }
  /// The register itself for an amount of 0.
  int rotate(int a, int amount);
  int prmt(int a, DecodeOperand b, uint32_t selector);
  int fma(DecodeOperand a, DecodeOperand b, DecodeOperand c);
  /// a * 2^exponent + c. Requires: 2^exponent is a number of the compute type.
  int scale(int a, int exponent, DecodeOperand c);
  /// a * 2^exponent.
  int scale(int a, int exponent);

  const std::vector<DecodeStep> &getSteps() const { return steps; }
  int getFirstResult() const { return firstResult; }
  /// A number of the compute type in all parts of a word.
  DecodeOperand splat(double value) const;

private:
  using Key =
      std::tuple<int, bool, uint32_t, bool, uint32_t, bool, uint32_t, uint32_t>;
  ComputeType compute;
  int firstResult;
  std::vector<DecodeStep> steps;
  std::map<Key, int> known;
};

/// What some of the slots of a plan need of it.
DecodePlan prune(const DecodePlan &plan, std::vector<int> slots);

/// What steps cost.
int getCost(const DecodeCost &cost, const DecodeRates &rates);
DecodeCost countSteps(const std::vector<DecodeStep> &steps);

/// The low bits of `bits` in each of `parts` parts of a word.
inline uint32_t repeat(uint32_t bits, int parts) {
  return parts == 2 ? bits * 0x00010001u : bits * 0x01010101u;
}

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_SEQUENCE_H
