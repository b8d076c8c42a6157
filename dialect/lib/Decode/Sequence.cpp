//===- Sequence.cpp - Steps of a plan while it is searched for ------------===//
#include "Sequence.h"

#include <cmath>

using namespace lowlp;

int Sequence::add(const DecodeStep &step) {
  const auto &[a, b, c] = step.operands;
  Key key = {static_cast<int>(step.kind),
             a.isImmediate,
             a.value,
             b.isImmediate,
             b.value,
             c.isImmediate,
             c.value,
             step.imm};
  auto [found, isNew] =
      known.try_emplace(key, firstResult + static_cast<int>(steps.size()));
  if (isNew)
    steps.push_back(step);
  return found->second;
}

int Sequence::lop3(int a, uint32_t b, DecodeOperand c, uint32_t table) {
  return add({DecodeStep::Kind::Lop3,
              {DecodeOperand::reg(a), DecodeOperand::imm(b), c},
              table});
}

int Sequence::rotate(int a, int amount) {
  if (!amount)
    return a;
  return add(
      {DecodeStep::Kind::Rotate,
       {DecodeOperand::reg(a), DecodeOperand::imm(0), DecodeOperand::imm(0)},
       static_cast<uint32_t>(amount)});
}

int Sequence::prmt(int a, DecodeOperand b, uint32_t selector) {
  return add({DecodeStep::Kind::Prmt,
              {DecodeOperand::reg(a), b, DecodeOperand::imm(0)},
              selector});
}

int Sequence::fma(DecodeOperand a, DecodeOperand b, DecodeOperand c) {
  return add({DecodeStep::Kind::Fma, {a, b, c}});
}

int Sequence::scale(int a, int exponent, DecodeOperand c) {
  return fma(DecodeOperand::reg(a), splat(std::ldexp(1.0, exponent)), c);
}

int Sequence::scale(int a, int exponent) {
  // Adding -0 changes no number, not even a zero's sign.
  return scale(a, exponent, splat(-0.0));
}

DecodeOperand Sequence::splat(double value) const {
  uint32_t bits = encodeNumber(compute, value);
  return DecodeOperand::imm(repeat(bits, FragmentFamily{compute}.getParts()));
}

int lowlp::getCost(const DecodeCost &cost, const DecodeRates &rates) {
  return cost.alu * rates.alu + cost.fma * rates.fma +
         cost.convert * rates.convert;
}

DecodeCost lowlp::countSteps(const std::vector<DecodeStep> &steps) {
  DecodePlan plan;
  plan.steps = steps;
  return plan.getCost();
}
