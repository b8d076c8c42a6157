//===- SequenceSearch.cpp - The shortest way from words to fragments ------===//
#include "lowlp/Decode/SequenceSearch.h"

#include <map>

using namespace lowlp;

namespace {
/// Where the bits of a weight must be for its half to be a number.
struct Target {
  /// By bit of the code.
  std::vector<int> bits;
  /// Bits that are always set.
  uint32_t ones = 0;
  DecodePlan::Row row;
};
} // namespace

static Result<Target> getTarget(const CodeFormat &format, ComputeType compute) {
  auto fail = [&](const std::string &what) -> Result<Target> {
    return Error{"decode plan: " + format.name() + " with " + getName(compute) +
                 ": " + what};
  };
  if (format.kind == CodeFormat::Kind::Table)
    return fail("tables are looked up, not computed");
  if (compute != ComputeType::F16 && compute != ComputeType::BF16)
    return fail("no plan yet");
  int mantissa = compute == ComputeType::F16 ? 10 : 7;
  int exponent = 15 - mantissa;
  Target target;
  if (format.kind == CodeFormat::Kind::Integer) {
    for (int bit = 0; bit < format.bits; ++bit)
      target.bits.push_back(bit);
    if (compute == ComputeType::F16) {
      target.row.exponent = -24;
      return target;
    }
    if (format.bits > mantissa)
      return fail("no plan yet");
    // 128 + q.
    target.ones = 0x43004300;
    target.row.offset = 128;
    return target;
  }
  if (format.exponentBits > exponent ||
      (compute == ComputeType::F16 && format.exponentBits == exponent &&
       format.name() != "e5m2"))
    return fail("no plan yet");
  for (int bit = 0; bit + 1 < format.bits; ++bit)
    target.bits.push_back(mantissa - format.mantissaBits + bit);
  target.bits.push_back(15);
  int bias = (1 << (format.exponentBits - 1)) - 1;
  int halfBias = (1 << (exponent - 1)) - 1;
  target.row.exponent = bias - halfBias;
  return target;
}

Result<DecodePlan> lowlp::planDecode(const Placement &placement,
                                     DecodeEnding ending,
                                     const DecodeRates &rates,
                                     std::vector<int> slots) {
  Result<Target> target =
      getTarget(placement.getFormat(), placement.getCompute());
  if (!target)
    return Error{target.error()};
  if (ending == DecodeEnding::Weights)
    return Error{"decode plan: no plan yet for scales on weights"};
  DecodePlan plan;
  plan.placement = placement.name();
  plan.numWords = placement.getNumWords();
  plan.rows.assign(2 * placement.getNumRowTiles(), target->row);
  if (slots.empty())
    for (int slot = 0; slot < placement.getNumSlots(); ++slot)
      slots.push_back(slot);
  auto add = [&](const DecodeStep &step) {
    plan.steps.push_back(step);
    return plan.getFirstResult() + static_cast<int>(plan.steps.size()) - 1;
  };
  std::map<std::pair<int, int>, int> rotated;
  int width = 32 / placement.getNumParts();
  for (int slot : slots) {
    // Bits by the word and the rotation that brings them home.
    std::map<std::pair<int, int>, uint32_t> masks;
    for (int part = 0; part < placement.getNumParts(); ++part)
      for (int bit = 0; bit < placement.getFormat().bits; ++bit) {
        BitPlace place = placement.getPlace(slot, part, bit);
        int home = target->bits[bit] + part * width;
        masks[{place.word, (place.bit - home + 32) % 32}] |= 1u << home;
      }
    DecodeOperand sum = DecodeOperand::imm(target->ones);
    for (auto [from, mask] : masks) {
      auto [word, shift] = from;
      int source = word;
      if (shift) {
        auto [found, isNew] = rotated.try_emplace(from, 0);
        if (isNew)
          found->second = add({DecodeStep::Kind::Rotate,
                               {DecodeOperand::reg(word), DecodeOperand::imm(0),
                                DecodeOperand::imm(0)},
                               static_cast<uint32_t>(shift)});
        source = found->second;
      }
      // (source & mask) | sum
      sum = DecodeOperand::reg(
          add({DecodeStep::Kind::Lop3,
               {DecodeOperand::reg(source), DecodeOperand::imm(mask), sum},
               0xea}));
    }
    plan.slots.push_back(slot);
    plan.results.push_back(static_cast<int>(sum.value));
  }
  if (Result<bool> proof = plan.prove(placement); !proof)
    return Error{proof.error()};
  return plan;
}
