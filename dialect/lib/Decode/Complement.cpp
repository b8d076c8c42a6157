//===- Complement.cpp - Plans for the values 0 and -1 ---------------------===//
//
// A code u of one bit that stands for u - 1 is -(1 - u), and 1 - u is the bit's
// complement, which a mask takes at no cost: no offset is left.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Decode/SequenceSearch.h"

#include <set>

using namespace lowlp;

/// The table of a LOP3 whose first operand is complemented.
static uint32_t complementFirst(uint32_t table) {
  return (table >> 4 | table << 4) & 0xff;
}

Result<DecodePlan> lowlp::complement(const DecodePlan &plan,
                                     const Placement &placement) {
  auto fail = [&] {
    return Error{"decode plan: the codes of " + plan.placement +
                 " are no bits that only masks take"};
  };
  if (plan.ending != DecodeEnding::Accumulators ||
      placement.getFormat().bits != 1)
    return fail();
  DecodePlan changed = plan;
  std::set<int> masks;
  for (int result : plan.results) {
    int index = result - plan.getFirstResult();
    // After a mask bf16 numbers are multiplied out of the subnormal ones.
    while (index >= 0 && plan.steps[index].kind == DecodeStep::Kind::Fma &&
           !plan.steps[index].operands[0].isImmediate)
      index = static_cast<int>(plan.steps[index].operands[0].value) -
              plan.getFirstResult();
    if (index < 0 || plan.steps[index].kind != DecodeStep::Kind::Lop3)
      return fail();
    masks.insert(index);
  }
  for (int mask : masks)
    changed.steps[mask].imm = complementFirst(changed.steps[mask].imm);
  for (DecodePlan::Row &row : changed.rows) {
    row.offset = -1 - row.offset;
    row.isNegated = !row.isNegated;
  }
  if (Result<bool> proof = changed.prove(placement); !proof)
    return Error{proof.error()};
  return changed;
}
