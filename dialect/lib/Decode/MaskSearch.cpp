//===- MaskSearch.cpp - Codes put together by masks -----------------------===//
#include "MaskSearch.h"

#include <algorithm>
#include <bitset>
#include <set>

using namespace lowlp;

static uint32_t rotateLeft(uint32_t bits, int amount) {
  amount &= 31;
  return amount ? bits << amount | bits >> (32 - amount) : bits;
}

static bool isWholeBytes(uint32_t mask) {
  for (int byte = 0; byte < 4; ++byte)
    if (uint32_t bits = mask >> (8 * byte) & 0xff; bits && bits != 0xff)
      return false;
  return true;
}

static int countBits(uint32_t bits) {
  return static_cast<int>(std::bitset<32>(bits).count());
}

/// Whether one PRMT with a zero rotates and masks.
static bool isBytePick(const MaskTarget &target) {
  return target.sources.size() == 1 && !target.flip &&
         target.sources[0].rotation % 8 == 0 &&
         isWholeBytes(target.sources[0].mask);
}

MaskTarget MaskPlan::getTarget(int index, int shift, int half) const {
  bool isSingle = homes.kind == Homes::Kind::ByF32;
  std::map<std::pair<int, int>, uint32_t> masks;
  for (int part = 0; part < period.placement.getNumParts(); ++part)
    for (int bit = 0; bit < homes.format.bits; ++bit) {
      if (isSingle && part != half)
        continue;
      int home = homes.getHome(bit, shift) +
                 (isSingle ? 16 : part * homes.getPartBits());
      BitPlace place = period.getPlace(index, part, bit);
      masks[{place.word, (place.bit - home + 32) % 32}] |= 1u << home;
    }
  MaskTarget target;
  target.flip = homes.getFlip(shift);
  for (auto [source, mask] : masks)
    target.sources.push_back({source.first, source.second, mask});
  return target;
}

//===----------------------------------------------------------------------===//
// Shifts
//===----------------------------------------------------------------------===//

int MaskPlan::countShifts() const {
  std::vector<uint32_t> rotations(period.numWords);
  int alu = 0, fma = 0;
  for (int index = 0; index < period.getNumSlots(); ++index) {
    const MaskTarget &target = choices[index][shifts[index]];
    alu += static_cast<int>(target.sources.size());
    if (!isBytePick(target))
      for (const MaskedWord &source : target.sources)
        rotations[source.word] |= 1u << source.rotation;
    if (homes.hasFma())
      fma += shifts[index] != rows[period.getRow(index)].shift;
  }
  for (uint32_t amounts : rotations)
    alu += countBits(amounts & ~1u);
  return alu * rates.alu + fma * rates.fma;
}

bool MaskPlan::improveSlot(int index) {
  int before = countShifts(), best = before, bestShift = shifts[index];
  for (int shift = 0; shift < homes.getNumShifts(); ++shift) {
    shifts[index] = shift;
    if (int cost = countShifts(); cost < best) {
      best = cost;
      bestShift = shift;
    }
  }
  shifts[index] = bestShift;
  return best < before;
}

bool MaskPlan::improveRow(int row) {
  int before = countShifts(), best = before;
  RowForm bestForm = rows[row];
  std::vector<int> bestShifts = shifts;
  for (int shift = 0; shift < homes.getNumShifts(); ++shift) {
    rows[row].shift = shift;
    for (int index = 0; index < period.getNumSlots(); ++index)
      if (!homes.hasFma() && period.getRow(index) == row)
        shifts[index] = shift;
    if (int cost = countShifts(); cost < best) {
      best = cost;
      bestForm = rows[row];
      bestShifts = shifts;
    }
  }
  rows[row] = bestForm;
  shifts = bestShifts;
  return best < before;
}

/// From several starts, each slot and row in turn to what is best with all
/// others as they are.
void MaskPlan::chooseShifts() {
  rows.assign(period.getNumRows(), {});
  shifts.assign(period.getNumSlots(), 0);
  if (homes.getNumShifts() == 1)
    return;
  for (int index = 0; index < period.getNumSlots(); ++index) {
    choices.emplace_back();
    for (int shift = 0; shift < homes.getNumShifts(); ++shift)
      choices.back().push_back(getTarget(index, shift, 0));
  }
  int best = -1;
  std::vector<RowForm> bestRows;
  std::vector<int> bestShifts;
  for (int start = 0; start < homes.getNumShifts(); ++start) {
    rows.assign(rows.size(), {start});
    shifts.assign(shifts.size(), start);
    for (bool isBetter = true; isBetter;) {
      isBetter = false;
      for (size_t row = 0; row < rows.size(); ++row)
        isBetter |= improveRow(static_cast<int>(row));
      for (int index = 0; homes.hasFma() && index < period.getNumSlots();
           ++index)
        isBetter |= improveSlot(index);
    }
    if (int cost = countShifts(); best < 0 || cost < best) {
      best = cost;
      bestRows = rows;
      bestShifts = shifts;
    }
  }
  rows = bestRows;
  shifts = bestShifts;
}

//===----------------------------------------------------------------------===//
// Merged words
//===----------------------------------------------------------------------===//

void MaskPlan::makeTargets() {
  int halves = homes.kind == Homes::Kind::ByF32 ? 2 : 1;
  for (int index = 0; index < period.getNumSlots(); ++index)
    for (int half = 0; half < halves; ++half)
      targets.push_back(getTarget(index, shifts[index], half));
  mergedOfTarget.assign(targets.size(), -1);
}

/// Rotations by which target b may lag behind target a: those for which a word
/// serves both.
static std::set<int> getLags(const MaskTarget &a, const MaskTarget &b) {
  std::set<int> lags;
  for (const MaskedWord &first : a.sources)
    for (const MaskedWord &second : b.sources)
      if (first.word == second.word)
        lags.insert((second.rotation - first.rotation + 32) % 32);
  return lags;
}

/// The merged word of two targets that are that many bits apart, none if two
/// words have a bit for the same place. Its own rotation is still open.
std::optional<MaskPlan::MergedWord> MaskPlan::merge(int a, int b,
                                                    int lag) const {
  std::map<std::pair<int, int>, uint32_t> masks;
  MergedWord merge;
  merge.rotations = {{a, 0}, {b, lag}};
  uint32_t taken = 0;
  for (auto [target, rotation] : merge.rotations)
    for (const MaskedWord &source : targets[target].sources) {
      uint32_t mask = rotateLeft(source.mask, rotation);
      if (taken & mask)
        return std::nullopt;
      taken |= mask;
      masks[{source.word, (source.rotation - rotation + 32) % 32}] |= mask;
    }
  for (auto [source, mask] : masks)
    merge.sources.push_back({source.first, source.second, mask});
  return merge;
}

/// Turns a merged word itself.
static MaskPlan::MergedWord rotateMerged(MaskPlan::MergedWord merge,
                                         int amount) {
  for (MaskedWord &source : merge.sources) {
    source.rotation = (source.rotation + amount) % 32;
    source.mask = rotateLeft(source.mask, -amount);
  }
  for (auto &[target, rotation] : merge.rotations)
    rotation = (rotation - amount + 32) % 32;
  return merge;
}

/// Instructions of the ALU for all targets.
int MaskPlan::countMasks() const {
  std::vector<uint32_t> rotations(period.numWords);
  int alu = 0;
  for (size_t index = 0; index < targets.size(); ++index) {
    if (mergedOfTarget[index] >= 0)
      continue;
    alu += static_cast<int>(targets[index].sources.size());
    if (!isBytePick(targets[index]))
      for (const MaskedWord &source : targets[index].sources)
        rotations[source.word] |= 1u << source.rotation;
  }
  for (const MergedWord &merge : merged) {
    alu += static_cast<int>(merge.sources.size()) - 1;
    for (const MaskedWord &source : merge.sources)
      rotations[source.word] |= 1u << source.rotation;
    for (auto [target, rotation] : merge.rotations)
      alu += rotation ? 2 : 1;
  }
  for (uint32_t amounts : rotations)
    alu += countBits(amounts & ~1u);
  return alu;
}

int MaskPlan::getCost() const {
  int cost = countMasks() * rates.alu;
  for (int index = 0; homes.hasFma() && index < period.getNumSlots(); ++index)
    cost += (shifts[index] != rows[period.getRow(index)].shift) * rates.fma;
  return cost;
}

/// Merges the words of two targets if that saves anything, in the best way.
bool MaskPlan::improveMerged(int a, int b) {
  int best = countMasks();
  std::optional<MergedWord> bestWord;
  int number = static_cast<int>(merged.size());
  mergedOfTarget[a] = mergedOfTarget[b] = number;
  merged.emplace_back();
  for (int lag : getLags(targets[a], targets[b])) {
    std::optional<MergedWord> merge = this->merge(a, b, lag);
    for (int amount = 0; merge && amount < 32; ++amount) {
      merged.back() = rotateMerged(*merge, amount);
      if (int cost = countMasks(); cost < best) {
        best = cost;
        bestWord = merged.back();
      }
    }
  }
  if (bestWord) {
    merged.back() = *bestWord;
    return true;
  }
  merged.pop_back();
  mergedOfTarget[a] = mergedOfTarget[b] = -1;
  return false;
}

void MaskPlan::chooseMergedWords() {
  int numTargets = static_cast<int>(targets.size());
  auto isOpen = [&](int target) {
    return mergedOfTarget[target] < 0 && targets[target].sources.size() > 1;
  };
  for (int a = 0; a < numTargets; ++a)
    for (int b = a + 1; b < numTargets && isOpen(a); ++b)
      if (isOpen(b))
        improveMerged(a, b);
}

MaskPlan MaskPlan::search(const Period &period, const Homes &homes,
                          DecodeEnding ending, const DecodeRates &rates) {
  MaskPlan plan(period, homes, ending, rates);
  plan.chooseShifts();
  plan.makeTargets();
  plan.chooseMergedWords();
  return plan;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

int MaskPlan::emitTarget(Sequence &sequence, int block, int target) const {
  int firstWord = block * period.numWords;
  const MaskTarget &made = targets[target];
  if (int number = mergedOfTarget[target]; number >= 0) {
    const MergedWord &merge = merged[number];
    int reg = -1;
    uint32_t mask = 0;
    for (const MaskedWord &source : merge.sources) {
      int rotated = sequence.rotate(firstWord + source.word, source.rotation);
      reg = reg < 0 ? rotated
                    : sequence.lop3(rotated, source.mask,
                                    DecodeOperand::reg(reg), kLop3Select);
    }
    for (const MaskedWord &source : made.sources)
      mask |= source.mask;
    reg = sequence.rotate(reg, merge.rotations.at(target));
    return sequence.lop3(reg, mask, DecodeOperand::imm(made.flip), kLop3AndXor);
  }
  if (isBytePick(made) && made.sources[0].rotation) {
    uint32_t selector = 0;
    for (int byte = 0; byte < 4; ++byte) {
      bool isTaken = made.sources[0].mask >> (8 * byte) & 1;
      int from = (byte + made.sources[0].rotation / 8) % 4;
      selector |= static_cast<uint32_t>(isTaken ? from : 4) << (4 * byte);
    }
    return sequence.prmt(firstWord + made.sources[0].word,
                         DecodeOperand::imm(0), selector);
  }
  DecodeOperand sum = DecodeOperand::imm(made.flip);
  for (const MaskedWord &source : made.sources)
    sum = DecodeOperand::reg(
        sequence.lop3(sequence.rotate(firstWord + source.word, source.rotation),
                      source.mask, sum, kLop3AndXor));
  return static_cast<int>(sum.value);
}

int MaskPlan::emit(Sequence &sequence, int block, int index, int scale) const {
  if (homes.kind != Homes::Kind::ByF32)
    return finishWhole(sequence, homes, ending, rows[period.getRow(index)],
                       shifts[index], emitTarget(sequence, block, index),
                       scale);
  // Bias 127, but that of the format, and the power of two that the rows keep.
  int bias = (1 << (homes.format.exponentBits - 1)) - 1;
  uint32_t factor =
      static_cast<uint32_t>(127 + 127 - bias + homes.roundedExponent) << 23;
  std::array<DecodeOperand, 2> numbers = {};
  for (int half = 0; half < 2; ++half)
    numbers[half] = DecodeOperand::reg(sequence.add(
        {DecodeStep::Kind::Mul32,
         {DecodeOperand::reg(emitTarget(sequence, block, 2 * index + half)),
          DecodeOperand::imm(factor), DecodeOperand::imm(0)}}));
  int reg = sequence.add({DecodeStep::Kind::Round,
                          {numbers[1], numbers[0], DecodeOperand::imm(0)}});
  if (ending != DecodeEnding::Weights)
    return reg;
  // The codes' values are out of range, the weights need not be.
  int scaled = sequence.scale(scale, -homes.roundedExponent);
  return sequence.fma(DecodeOperand::reg(reg), DecodeOperand::reg(scaled),
                      sequence.splat(-0.0));
}
