//===- Signs.cpp - Integers as sign and magnitude in bytes ----------------===//
//
// A byte of f8e4m3 up to 16 is that many times 2^-9, and its high bit is the
// sign. A plan for integers of b bits leaves u 2^s in a byte, where u is v + h
// of a signed v, with h = 2^(b-1). With n = 1 where u < h, the byte of v is
//
//   (u 2^s ^ h 2^s ^ n (2h - 1) 2^s) + n (128 + 2^s)
//
// for u ^ h is v where v >= 0, and 2h - |v| elsewhere, whose complement in b
// bits is |v| - 1. No product or sum passes from one byte to the next.
//
//===----------------------------------------------------------------------===//
#include "Sequence.h"

using namespace lowlp;

/// a ^ b ^ c; ~a & b.
static constexpr uint32_t kLop3Xor = 0x96;
static constexpr uint32_t kLop3NotAnd = 0x0c;
/// The sign of f8e4m3, and its least number's exponent.
static constexpr uint32_t kSign = 0x80;
static constexpr int kLeastExponent = -9;

Result<DecodePlan> lowlp::useSigns(const DecodePlan &plan,
                                   const Placement &placement) {
  const int bits = placement.getFormat().bits;
  const uint32_t half = 1u << (bits - 1);
  if (plan.ending != DecodeEnding::Accumulators ||
      placement.getCompute() != ComputeType::E4M3 || bits < 2 || half > 16)
    return Error{"decode plan: signs are taken of integers of 2 to 5 bits in "
                 "f8e4m3 whose scales are on accumulators"};
  const int parts = placement.getNumParts();
  DecodePlan changed = plan;
  auto add = [&](DecodeStep::Kind kind, DecodeOperand a, DecodeOperand b,
                 DecodeOperand c, uint32_t imm) {
    changed.steps.push_back({kind, {a, b, c}, imm});
    return DecodeOperand::reg(changed.getFirstResult() +
                              static_cast<int>(changed.steps.size()) - 1);
  };
  const DecodeOperand none = DecodeOperand::imm(0);
  for (size_t i = 0; i < changed.results.size(); ++i) {
    const DecodePlan::Row &row =
        plan.rows[placement.getRowOfSlot(plan.slots[i])];
    const int shift = row.exponent - kLeastExponent;
    if (shift < 0 || half << shift > 16)
      return Error{"decode plan: codes of " + plan.placement +
                   " lie where f8e4m3 has other exponents"};
    const DecodeOperand code = DecodeOperand::reg(plan.results[i]);
    DecodeOperand top =
        add(DecodeStep::Kind::Rotate, code, none, none, bits - 1 + shift);
    DecodeOperand negative =
        add(DecodeStep::Kind::Lop3, top, DecodeOperand::imm(repeat(1, parts)),
            none, kLop3NotAnd);
    DecodeOperand ones =
        add(DecodeStep::Kind::Mad, negative,
            DecodeOperand::imm((2 * half - 1) << shift), none, 0);
    DecodeOperand flipped =
        add(DecodeStep::Kind::Lop3, code,
            DecodeOperand::imm(repeat(half << shift, parts)), ones, kLop3Xor);
    DecodeOperand signedCode =
        add(DecodeStep::Kind::Mad, negative,
            DecodeOperand::imm(kSign | 1u << shift), flipped, 0);
    changed.results[i] = static_cast<int>(signedCode.value);
  }
  for (DecodePlan::Row &row : changed.rows)
    row.offset = -static_cast<double>(half);
  if (Result<bool> proof = changed.prove(placement); !proof)
    return Error{proof.error()};
  return changed;
}
