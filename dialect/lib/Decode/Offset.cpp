//===- Offset.cpp - Plans whose numbers have another offset ---------------===//
//
// The new offset less the old one, times the power of two of its row, is added
// to each register: by the last product that has an immediate addend, where
// nothing else uses what it makes, else by a step of its own. Adding earlier
// may round, so of the two plans the first one that is proved counts.
//
//===----------------------------------------------------------------------===//
#include "Sequence.h"

#include <cmath>

using namespace lowlp;

namespace {
class OffsetWriter {
public:
  OffsetWriter(DecodePlan plan, const Placement &placement, double offset)
      : plan(std::move(plan)), placement(placement), offset(offset) {}

  /// Fails if a constant is no number of the compute type.
  Result<DecodePlan> run(bool intoProducts) {
    countUses();
    int parts = placement.getNumParts();
    for (size_t i = 0; i < plan.slots.size(); ++i) {
      const DecodePlan::Row &row =
          plan.rows[placement.getRowOfSlot(plan.slots[i])];
      double change = (offset - row.offset) * row.getFactor();
      if (change == 0)
        continue;
      if (intoProducts && addToProduct(plan.results[i], change))
        continue;
      uint32_t bits = encodeNumber(placement.getCompute(), change);
      if (decodeNumber(placement.getCompute(), bits) != change)
        return Error{"decode plan: an offset of " + std::to_string(offset) +
                     " is no number of the rows of " + plan.placement};
      plan.steps.push_back(
          {DecodeStep::Kind::Fma,
           {DecodeOperand::reg(plan.results[i]),
            DecodeOperand::imm(
                repeat(encodeNumber(placement.getCompute(), 1), parts)),
            DecodeOperand::imm(repeat(bits, parts))}});
      plan.results[i] =
          plan.getFirstResult() + static_cast<int>(plan.steps.size()) - 1;
    }
    for (DecodePlan::Row &row : plan.rows)
      row.offset = offset;
    if (Result<bool> proof = plan.prove(placement); !proof)
      return Error{proof.error()};
    return plan;
  }

private:
  void countUses() {
    uses.assign(plan.getFirstResult() + plan.steps.size(), 0);
    for (const DecodeStep &step : plan.steps)
      for (int k = 0; k < step.getNumOperands(); ++k)
        if (!step.operands[k].isImmediate)
          ++uses[step.operands[k].value];
    for (int result : plan.results)
      ++uses[result];
  }

  /// Whether a product that only this register is made of could take it.
  bool addToProduct(int reg, double change) {
    int index = reg - plan.getFirstResult();
    if (index < 0 || uses[reg] != 1 ||
        plan.steps[index].kind != DecodeStep::Kind::Fma)
      return false;
    DecodeOperand &addend = plan.steps[index].operands[2];
    if (!addend.isImmediate)
      return addToProduct(static_cast<int>(addend.value), change);
    ComputeType compute = placement.getCompute();
    double sum = decodeNumber(compute, addend.value & 0xffff) + change;
    uint32_t bits = encodeNumber(compute, sum);
    if (decodeNumber(compute, bits) != sum)
      return false;
    addend.value = repeat(bits, placement.getNumParts());
    return true;
  }

  DecodePlan plan;
  const Placement &placement;
  double offset;
  std::vector<int> uses;
};
} // namespace

Result<DecodePlan> lowlp::setOffset(const DecodePlan &plan,
                                    const Placement &placement, double offset) {
  if (plan.ending != DecodeEnding::Accumulators || placement.getNumParts() != 2)
    return Error{"decode plan: offsets are taken off numbers of f16 and bf16 "
                 "whose scales are on accumulators"};
  Result<DecodePlan> merged = OffsetWriter(plan, placement, offset).run(true);
  return merged ? merged : OffsetWriter(plan, placement, offset).run(false);
}
