//===- TableSearch.cpp - Numbers bit by bit from codes --------------------===//
#include "TableSearch.h"

#include <cmath>

using namespace lowlp;

TablePlan::TablePlan(const Period &period, const Homes &homes)
    : period(period), homes(homes), rows(period.getNumRows()) {}

/// A register that has a bit of the codes at the home of each part.
int TablePlan::emitBit(Sequence &sequence, int block, int index, int home,
                       int bit) const {
  std::map<std::pair<int, int>, uint32_t> masks;
  for (int part = 0; part < period.placement.getNumParts(); ++part) {
    BitPlace place = period.getPlace(index, part, bit);
    int here = home + part * homes.getPartBits();
    masks[{place.word, (place.bit - here + 32) % 32}] |= 1u << here;
  }
  int found = -1;
  for (auto [source, mask] : masks) {
    int rotated =
        sequence.rotate(block * period.numWords + source.first, source.second);
    // All other bits may be anything.
    found = found < 0 ? rotated
                      : sequence.lop3(rotated, mask, DecodeOperand::reg(found),
                                      kLop3Select);
  }
  return found;
}

/// The function of `numInputs` registers whose table has bit i for the inputs
/// that are the bits of i.
int TablePlan::emitFunction(Sequence &sequence, const std::vector<int> &inputs,
                            uint32_t table, int numInputs) const {
  auto reg = [&](int input) { return DecodeOperand::reg(inputs[input]); };
  if (numInputs == 3)
    // LOP3 counts a as 4.
    return sequence.add(
        {DecodeStep::Kind::Lop3, {reg(2), reg(1), reg(0)}, table & 0xff});
  int half = 1 << (numInputs - 1);
  int clear =
      emitFunction(sequence, inputs, table & ((1u << half) - 1), numInputs - 1);
  int set = emitFunction(sequence, inputs, table >> half, numInputs - 1);
  return sequence.add(
      {DecodeStep::Kind::Lop3,
       {DecodeOperand::reg(set), reg(numInputs - 1), DecodeOperand::reg(clear)},
       kLop3Select});
}

int TablePlan::emit(Sequence &sequence, int block, int index,
                    int /*scale*/) const {
  int bits = homes.format.bits;
  int partBits = homes.getPartBits();
  DecodeOperand sum = DecodeOperand::imm(0);
  for (int home = 0; home < partBits; ++home) {
    uint32_t table = 0;
    for (int code = 0; code < 1 << bits; ++code) {
      double value = code - std::ldexp(1.0, bits - 1);
      table |= (encodeNumber(homes.compute, value) >> home & 1) << code;
    }
    if (!table)
      continue;
    std::vector<int> inputs;
    inputs.reserve(bits);
    for (int bit = 0; bit < bits; ++bit)
      inputs.push_back(emitBit(sequence, block, index, home, bit));
    int found = emitFunction(sequence, inputs, table, bits);
    uint32_t mask = repeat(1u << home, period.placement.getNumParts());
    sum = DecodeOperand::reg(sequence.lop3(found, mask, sum, kLop3AndXor));
  }
  return static_cast<int>(sum.value);
}
