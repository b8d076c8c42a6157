//===- SequenceSearch.cpp - The shortest way from words to fragments ------===//
//
// Integers whose parts lie alike are sums of pieces (PieceSearch.h); all else
// is put together by masks (MaskSearch.h). Both find a plan of all slots; that
// of some slots is what they need of it, so exponents and offsets do not depend
// on which slots are asked for.
//
//===----------------------------------------------------------------------===//
#include "MaskSearch.h"
#include "PieceSearch.h"
#include "TableSearch.h"

#include "lowlp/Decode/PackedTile.h"

#include <algorithm>
#include <cassert>

using namespace lowlp;

/// All slots of `placement`, by the search of the first block of it in units 64
/// wide, `period`. Rows of narrower units are parts of theirs.
template <typename Search>
static DecodePlan makePlan(const Placement &placement, const Period &period,
                           const Homes &homes, DecodeEnding ending,
                           const Search &search) {
  DecodePlan plan;
  plan.placement = placement.name();
  plan.ending = ending;
  plan.numWords = placement.getNumWords();
  for (int tile = 0; tile < placement.getNumRowTiles(); ++tile)
    for (int half = 0; half < 2; ++half) {
      int slot = getSlotsOfTile(placement, tile)[half];
      const RowForm &form =
          search.getRows()[period.placement.getRowOfSlot(slot)];
      plan.rows.push_back(ending == DecodeEnding::Weights
                              ? DecodePlan::Row{}
                              : getRow(homes, form));
    }
  Sequence sequence(placement.getCompute(), plan.getFirstResult());
  std::map<int, int> registers;
  for (int block = 0; block < period.numBlocks; ++block)
    for (int index = 0; index < period.getNumSlots(); ++index) {
      int slot = period.getSlot(index, block);
      int parameters = plan.numWords + 2 * placement.getRowOfSlot(slot);
      registers[slot] = search.emit(sequence, block, index, parameters);
    }
  plan.steps = sequence.getSteps();
  for (auto [slot, reg] : registers) {
    plan.slots.push_back(slot);
    plan.results.push_back(reg);
  }
  return plan;
}

DecodePlan lowlp::prune(const DecodePlan &plan, std::vector<int> slots) {
  int first = plan.getFirstResult();
  int numSteps = static_cast<int>(plan.steps.size());
  std::vector<bool> isNeeded(numSteps, false);
  auto need = [&](int reg) {
    if (reg >= first)
      isNeeded[reg - first] = true;
  };
  auto getResult = [&](int slot) {
    auto found = std::find(plan.slots.begin(), plan.slots.end(), slot);
    return plan.results[found - plan.slots.begin()];
  };
  for (int slot : slots)
    need(getResult(slot));
  for (int index = numSteps - 1; index >= 0; --index)
    for (int k = 0; isNeeded[index] && k < plan.steps[index].getNumOperands();
         ++k)
      if (const DecodeOperand &operand = plan.steps[index].operands[k];
          !operand.isImmediate)
        need(static_cast<int>(operand.value));

  DecodePlan pruned = plan;
  pruned.steps.clear();
  std::vector<int> renumbered(numSteps, -1);
  auto rename = [&](int reg) {
    return reg < first ? reg : renumbered[reg - first];
  };
  for (int index = 0; index < numSteps; ++index) {
    if (!isNeeded[index])
      continue;
    renumbered[index] = first + static_cast<int>(pruned.steps.size());
    DecodeStep step = plan.steps[index];
    for (int k = 0; k < step.getNumOperands(); ++k)
      if (DecodeOperand &operand = step.operands[k]; !operand.isImmediate)
        operand = DecodeOperand::reg(rename(static_cast<int>(operand.value)));
    pruned.steps.push_back(step);
  }
  pruned.results.clear();
  for (int slot : slots)
    pruned.results.push_back(rename(getResult(slot)));
  pruned.slots = std::move(slots);
  return pruned;
}

static DecodePlan findPlan(const Placement &placement, const Homes &homes,
                           DecodeEnding ending, const DecodeRates &rates) {
  Placement wide = placement.withUnitK(FragmentFamily::maxUnitK);
  Period period(wide);
  if (homes.kind == Homes::Kind::ByTable)
    return makePlan(placement, period, homes, ending, TablePlan(period, homes));
  if (homes.kind == Homes::Kind::Linear && homes.hasFma())
    if (std::optional<PiecePlan> pieces =
            PiecePlan::search(period, homes, ending, rates))
      return makePlan(placement, period, homes, ending, *pieces);
  return makePlan(placement, period, homes, ending,
                  MaskPlan::search(period, homes, ending, rates));
}

Result<DecodePlan> lowlp::planDecode(const Placement &placement,
                                     DecodeEnding ending,
                                     const DecodeRates &rates,
                                     std::vector<int> slots) {
  Result<Homes> found =
      Homes::get(placement.getFormat(), placement.getCompute());
  if (!found)
    return Error{found.error()};
  Homes homes = *found;
  homes.isUnsigned = ending == DecodeEnding::Unsigned;
  if (homes.isUnsigned && placement.getCompute() != ComputeType::S8)
    return Error{"decode plan: numbers of " + getName(placement.getCompute()) +
                 " are no bytes without sign; allowed: int8"};
  if (ending == DecodeEnding::Weights && !homes.hasFma())
    return Error{"decode plan: scales go on accumulators with " +
                 getName(placement.getCompute()) +
                 ", which has no products of pairs; allowed: f16, bf16"};
  int numSlots = placement.getNumSlots();
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  for (int slot : slots)
    if (slot < 0 || slot >= numSlots)
      return Error{"decode plan: slot " + std::to_string(slot) + " of " +
                   placement.name() + " is outside of 0.." +
                   std::to_string(numSlots - 1)};
  DecodePlan plan = findPlan(placement, homes, ending, rates);
  if (!slots.empty())
    plan = prune(plan, std::move(slots));
  if (Result<bool> proof = plan.prove(placement); !proof)
    return Error{proof.error()};
  return plan;
}

Result<DecodePlan> lowlp::planSigned(const Placement &placement,
                                     const DecodeRates &rates) {
  Result<Homes> found =
      Homes::get(placement.getFormat(), placement.getCompute());
  if (!found)
    return Error{found.error()};
  Homes homes = *found;
  if (placement.getCompute() != ComputeType::S8)
    return Error{"decode plan: numbers of " + getName(placement.getCompute()) +
                 " are no signed bytes; allowed: int8"};
  homes.leastShift = homes.window - placement.getFormat().bits;
  DecodePlan plan =
      findPlan(placement, homes, DecodeEnding::Accumulators, rates);
  if (Result<bool> proof = plan.prove(placement); !proof)
    return Error{proof.error()};
  return plan;
}

Result<DecodePlan> lowlp::planTile(const Placement &placement,
                                   DecodeEnding ending,
                                   const DecodeRates &rates) {
  assert(findTileShift(placement) && "tiles must lie alike");
  Result<DecodePlan> found =
      planDecode(placement, ending, rates, getSlotsOfTile(placement, 0));
  if (!found)
    return found;
  DecodePlan plan = *found;
  for (size_t row = 2; row < plan.rows.size(); ++row)
    plan.rows[row] = plan.rows[row % 2];
  return plan;
}
