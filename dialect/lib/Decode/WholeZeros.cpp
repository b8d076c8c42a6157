//===- WholeZeros.cpp - Plans for zero points that are integers -----------===//
//
// An integer u in the low bits of a half is a subnormal number, far from 1, and
// two products bring it there. With the exponent of 2^10 (bf16: 2^7) on top it
// is 1024 + u, and one product and sum take the 1024 and the zero off at once,
// exactly if the zero is an integer that is small enough:
//
//   mask, u * 2^15, u * 2^d - zero           ->   mask | 1024, u * 2^-s - zero'
//   mask, byte - u, u * 2^15, u * 2^d - zero  ->   the same of the byte's other
//                                                 bits
//
//===----------------------------------------------------------------------===//
#include "Homes.h"
#include "Sequence.h"

#include <cmath>

using namespace lowlp;

namespace {
class WholeZerosWriter {
public:
  WholeZerosWriter(const DecodePlan &plan, const Placement &placement)
      : plan(plan), compute(placement.getCompute()),
        isHalf(compute == ComputeType::F16) {}

  DecodePlan run(const std::vector<int> &slots) {
    for (int &result : plan.results)
      if (std::optional<int> other = rewrite(result))
        result = *other;
    return prune(plan, slots);
  }

private:
  /// The step that makes a register, of a kind; null for anything else.
  const DecodeStep *find(const DecodeOperand &operand,
                         DecodeStep::Kind kind) const {
    int index = static_cast<int>(operand.value) - plan.getFirstResult();
    if (operand.isImmediate || index < 0 || plan.steps[index].kind != kind)
      return nullptr;
    return &plan.steps[index];
  }

  int add(const DecodeStep &step) {
    plan.steps.push_back(step);
    return plan.getFirstResult() + static_cast<int>(plan.steps.size()) - 1;
  }

  DecodeOperand splat(double value) const {
    return DecodeOperand::imm(repeat(encodeNumber(compute, value), 2));
  }

  /// d of a product by 2^d, alike in both halves.
  std::optional<int> getExponent(const DecodeOperand &factor) const {
    if (!factor.isImmediate || factor.value >> 16 != (factor.value & 0xffff))
      return std::nullopt;
    double value = decodeNumber(compute, factor.value & 0xffff);
    if (value <= 0 || std::ldexp(1.0, std::ilogb(value)) != value)
      return std::nullopt;
    return std::ilogb(value);
  }

  /// Bits that are masked out of a register.
  struct Masked {
    DecodeOperand source;
    uint32_t mask;
  };

  /// `source & mask`, or a byte of each half less other bits of it.
  std::optional<Masked> getMasked(const DecodeOperand &operand) const {
    if (const DecodeStep *mask = find(operand, DecodeStep::Kind::Lop3)) {
      if (mask->imm != kLop3And || !mask->operands[1].isImmediate)
        return std::nullopt;
      return Masked{mask->operands[0], mask->operands[1].value};
    }
    // Bytes 1 and 3, or 3 and 1, each with a byte of zeros.
    if (const DecodeStep *bytes = find(operand, DecodeStep::Kind::Prmt)) {
      bool isLow = bytes->operands[1] == DecodeOperand::imm(0) &&
                   (bytes->imm == 0x4341 || bytes->imm == 0x4143);
      return isLow ? std::optional<Masked>({operand, 0x00ff00ff})
                   : std::nullopt;
    }
    const DecodeStep *rest = find(operand, DecodeStep::Kind::Fma);
    if (!rest || !(rest->operands[1] == splat(-1)))
      return std::nullopt;
    std::optional<Masked> taken = getMasked(rest->operands[0]);
    std::optional<Masked> whole = getMasked(rest->operands[2]);
    if (!taken || !whole || !(taken->source == whole->source))
      return std::nullopt;
    return Masked{whole->source, whole->mask & ~taken->mask};
  }

  /// A register with the same weight in fewer steps, if there is one.
  std::optional<int> rewrite(int result) {
    const DecodeStep *scaled =
        find(DecodeOperand::reg(result), DecodeStep::Kind::Fma);
    if (!scaled)
      return std::nullopt;
    const DecodeStep *less = find(scaled->operands[0], DecodeStep::Kind::Fma);
    if (!less || less->operands[2].isImmediate)
      return std::nullopt;
    DecodeOperand scale = scaled->operands[1], zero = less->operands[2];
    std::optional<int> exponent = getExponent(less->operands[1]);
    DecodeOperand number = less->operands[0];
    const DecodeStep *lifted = find(number, DecodeStep::Kind::Fma);
    if (lifted && lifted->operands[2] == splat(-0.0))
      if (std::optional<int> lift = getExponent(lifted->operands[1]);
          lift && exponent) {
        exponent = *exponent + *lift;
        number = lifted->operands[0];
      }
    std::optional<Masked> masked = getMasked(number);
    int bits = isHalf ? 10 : 7;
    uint32_t window = repeat((1u << bits) - 1, 2);
    if (!exponent || !masked || masked->mask & ~window)
      return std::nullopt;
    // What bit 0 of the half is worth.
    int unit = *exponent + (isHalf ? -24 : -133);
    double magic = std::ldexp(1.0, bits);
    int with = addExponent(*masked, magic);
    int difference =
        add({DecodeStep::Kind::Fma,
             {DecodeOperand::reg(with), splat(std::ldexp(1.0, unit)),
              getZero(zero, std::ldexp(magic, unit))}});
    return add({DecodeStep::Kind::Fma,
                {DecodeOperand::reg(difference), scale, splat(-0.0)}});
  }

  /// The masked bits with the exponent of `magic`. A whole byte gets it from
  /// the PRMT that picks it, in place of a byte of zeros.
  int addExponent(const Masked &masked, double magic) {
    const DecodeStep *bytes = find(masked.source, DecodeStep::Kind::Prmt);
    if (isHalf && bytes && masked.mask == 0x00ff00ff) {
      uint32_t high = encodeNumber(compute, magic) >> 8;
      return add({DecodeStep::Kind::Prmt,
                  {bytes->operands[0], DecodeOperand::imm(high),
                   DecodeOperand::imm(0)},
                  bytes->imm});
    }
    return add({DecodeStep::Kind::Lop3,
                {masked.source, DecodeOperand::imm(masked.mask), splat(magic)},
                kLop3AndOr});
  }

  /// Minus the zero, less `offset`; one step for each pair.
  DecodeOperand getZero(const DecodeOperand &zero, double offset) {
    auto [found, isNew] = zeros.try_emplace({zero.value, offset}, 0);
    if (isNew)
      found->second =
          add({DecodeStep::Kind::Fma, {zero, splat(1), splat(-offset)}});
    return DecodeOperand::reg(found->second);
  }

  DecodePlan plan;
  ComputeType compute;
  bool isHalf;
  std::map<std::pair<uint32_t, double>, int> zeros;
};
} // namespace

Result<DecodePlan> lowlp::useWholeZeros(const DecodePlan &plan,
                                        const Placement &placement) {
  if (plan.ending != DecodeEnding::Weights)
    return Error{"decode plan: zeros are those of scales on weights"};
  if (placement.getFormat().kind != CodeFormat::Kind::Integer)
    return plan;
  DecodePlan found = WholeZerosWriter(plan, placement).run(plan.slots);
  if (Result<bool> proof = found.prove(placement); !proof)
    return Error{proof.error()};
  return found;
}
