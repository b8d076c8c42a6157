//===- Endings.cpp - From decoded pieces to what a plan promises ----------===//
//
// All constants are powers of two, or such that the sum is exact: what the
// steps here do to f16 and bf16 numbers is checked by the proof of each plan.
//
//===----------------------------------------------------------------------===//
#include "Endings.h"

#include <algorithm>
#include <cmath>

using namespace lowlp;

int lowlp::getLift(ComputeType compute) {
  return compute == ComputeType::F16 ? 15 : 127;
}

/// Products by powers of two that make 2^exponent times a number the number.
static int countUnscalings(ComputeType compute, int exponent) {
  int lift = getLift(compute);
  return (std::max(-exponent, 1) + lift - 1) / lift;
}

/// Sums of bf16 are lifted out of the subnormal numbers, whose products with
/// activations would be lost.
static bool isLifted(const Homes &homes) {
  return homes.compute == ComputeType::BF16;
}

DecodePlan::Row lowlp::getRow(const Homes &homes, const RowForm &form) {
  if (form.isMagic)
    return {form.shift, std::ldexp(128.0, -form.shift)};
  int exponent = homes.getExponent(form.shift);
  if (isLifted(homes)) {
    // No shift is below 0 by masks, and none above by pieces.
    int lowest = homes.getExponent(std::min(form.shift, 0));
    exponent = std::min(lowest + getLift(homes.compute), 0);
  }
  return {exponent, homes.getOffset(form.shift)};
}

int lowlp::countFmas(const Homes &homes, DecodeEnding ending,
                     const RowForm &form, const std::vector<int> &shifts) {
  int groups = static_cast<int>(shifts.size());
  if (ending == DecodeEnding::Weights) {
    if (groups > 1)
      return groups + 2;
    return countUnscalings(homes.compute, homes.unitExponent + shifts[0]) + 1;
  }
  int natural = std::count(shifts.begin(), shifts.end(), form.shift) ? 1 : 0;
  if (form.isMagic)
    return natural ? 2 * (groups - 1) : 2 * groups - 1;
  return isLifted(homes) ? groups : groups - natural;
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

/// Pieces of 128 + u: one keeps its 128, or gets it, and the others lose it.
static int sumMagic(Sequence &sequence, const RowForm &form,
                    const std::vector<Group> &groups) {
  int total = -1;
  for (const Group &group : groups) {
    double factor = std::ldexp(1.0, form.shift - group.shift);
    if (total < 0) {
      total = group.shift == form.shift
                  ? group.reg
                  : sequence.scale(group.reg, form.shift - group.shift,
                                   sequence.splat(128 - 128 * factor));
      continue;
    }
    int piece = sequence.scale(group.reg, form.shift - group.shift,
                               sequence.splat(-128 * factor));
    total = sequence.scale(piece, 0, DecodeOperand::reg(total));
  }
  return total;
}

static int sumPlain(Sequence &sequence, const Homes &homes, int shift, int lift,
                    const std::vector<Group> &groups) {
  int total = -1;
  for (const Group &group : groups) {
    int exponent = lift + shift - group.shift;
    if (total < 0)
      total = exponent ? sequence.scale(group.reg, exponent) : group.reg;
    else
      total = sequence.scale(group.reg, exponent, DecodeOperand::reg(total));
  }
  return total;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// scale * (number / 2^exponent - zero)
static int weigh(Sequence &sequence, ComputeType compute, int reg, int exponent,
                 int scale) {
  for (; -exponent > getLift(compute); exponent += getLift(compute))
    reg = sequence.scale(reg, getLift(compute));
  reg = sequence.scale(reg, -exponent, DecodeOperand::reg(scale + 1));
  return sequence.fma(DecodeOperand::reg(reg), DecodeOperand::reg(scale),
                      sequence.splat(-0.0));
}

int lowlp::finish(Sequence &sequence, const Homes &homes, DecodeEnding ending,
                  const RowForm &form, std::vector<Group> groups, int scale) {
  // The one that is in the row's form already comes first.
  auto natural =
      std::find_if(groups.begin(), groups.end(), [&](const Group &group) {
        return group.shift == form.shift;
      });
  if (natural != groups.end())
    std::iter_swap(groups.begin(), natural);
  if (ending != DecodeEnding::Weights) {
    if (form.isMagic)
      return sumMagic(sequence, form, groups);
    int lift = isLifted(homes) ? getLift(homes.compute) : 0;
    return sumPlain(sequence, homes, form.shift, lift, groups);
  }
  int exponent = homes.unitExponent + groups[0].shift;
  int reg = groups[0].reg;
  if (groups.size() > 1) {
    int lowest = groups[0].shift;
    for (const Group &group : groups)
      lowest = std::min(lowest, group.shift);
    int lift = getLift(homes.compute);
    reg = sumPlain(sequence, homes, lowest, lift, groups);
    exponent = homes.unitExponent + lowest + lift;
  }
  return weigh(sequence, homes.compute, reg, exponent, scale);
}

int lowlp::finishWhole(Sequence &sequence, const Homes &homes,
                       DecodeEnding ending, const RowForm &form, int shift,
                       int reg, int scale) {
  if (ending == DecodeEnding::Weights)
    return weigh(sequence, homes.compute, reg, homes.getExponent(shift), scale);
  if (!homes.hasFma())
    return reg;
  int change = getRow(homes, form).exponent - homes.getExponent(shift);
  return change ? sequence.scale(reg, change) : reg;
}
