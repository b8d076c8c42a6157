//===- Period.cpp - The part of a unit that repeats -----------------------===//
#include "Period.h"

using namespace lowlp;

bool lowlp::arePartsAlike(const Placement &placement, int slot) {
  int stride = 32 / placement.getNumParts();
  for (int part = 1; part < placement.getNumParts(); ++part)
    for (int bit = 0; bit < placement.getFormat().bits; ++bit) {
      BitPlace first = placement.getPlace(slot, 0, bit);
      BitPlace alike = {first.word, (first.bit + part * stride) % 32};
      if (!(placement.getPlace(slot, part, bit) == alike))
        return false;
    }
  return true;
}

/// Whether the steps from `period` on are copies of the first ones.
static bool repeats(const Placement &placement, int period) {
  int steps = placement.getNumSteps();
  if (placement.getNumWords() * period % steps)
    return false;
  int words = placement.getNumWords() * period / steps;
  for (int slot = 0; slot < placement.getNumSlots(); ++slot) {
    int step = slot / 4 % steps;
    int block = step / period;
    for (int part = 0; part < placement.getNumParts(); ++part)
      for (int bit = 0; bit < placement.getFormat().bits; ++bit) {
        BitPlace here = placement.getPlace(slot, part, bit);
        BitPlace first =
            placement.getPlace(slot - 4 * block * period, part, bit);
        if (here.bit != first.bit || here.word != first.word + block * words)
          return false;
      }
  }
  return true;
}

int lowlp::getPeriod(const Placement &placement) {
  int period = 1;
  while (period < placement.getNumSteps() && !repeats(placement, period))
    period *= 2;
  return period;
}

Period::Period(const Placement &placement) : placement(placement) {
  int steps = getPeriod(placement);
  numBlocks = placement.getNumSteps() / steps;
  numWords = placement.getNumWords() / numBlocks;
  for (int slot = 0; slot < placement.getNumSlots(); ++slot)
    if (slot / 4 % placement.getNumSteps() < steps)
      slots.push_back(slot);
}

bool Period::arePartsAlike(int index) const {
  return ::lowlp::arePartsAlike(placement, slots[index]);
}
