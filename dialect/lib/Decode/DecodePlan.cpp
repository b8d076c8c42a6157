//===- DecodePlan.cpp - How packed words become fragments -----------------===//
#include "lowlp/Decode/DecodePlan.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <sstream>

using namespace lowlp;

int DecodeStep::getNumOperands() const {
  switch (kind) {
  case Kind::Lop3:
  case Kind::Fma:
  case Kind::Mad:
    return 3;
  case Kind::Prmt:
  case Kind::Mul32:
  case Kind::Round:
    return 2;
  case Kind::Rotate:
    return 1;
  }
  return 0;
}

DecodeCost DecodePlan::getCost() const {
  DecodeCost cost;
  for (const DecodeStep &step : steps) {
    switch (step.kind) {
    case DecodeStep::Kind::Lop3:
    case DecodeStep::Kind::Prmt:
    case DecodeStep::Kind::Rotate:
      ++cost.alu;
      break;
    case DecodeStep::Kind::Fma:
    case DecodeStep::Kind::Mul32:
    case DecodeStep::Kind::Mad:
      ++cost.fma;
      break;
    case DecodeStep::Kind::Round:
      ++cost.convert;
      break;
    }
  }
  return cost;
}

size_t DecodePlan::hash() const { return std::hash<std::string>()(print()); }

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static uint32_t runLop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (int entry = 0; entry < 8; ++entry)
    if (table >> entry & 1)
      result |=
          (entry & 4 ? a : ~a) & (entry & 2 ? b : ~b) & (entry & 1 ? c : ~c);
  return result;
}

static uint32_t runPrmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t nibble = selector >> (4 * i) & 0xf;
    uint32_t byte = bytes >> (8 * (nibble & 7)) & 0xff;
    // The high bit of a nibble asks for copies of the byte's sign.
    if (nibble & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

static float toFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t toBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// One half of a fused multiply-add. A double holds the product and, for what
/// plans do, the sum exactly.
static uint32_t fmaHalf(ComputeType compute, uint32_t a, uint32_t b,
                        uint32_t c) {
  return encodeNumber(compute, std::fma(decodeNumber(compute, a),
                                        decodeNumber(compute, b),
                                        decodeNumber(compute, c)));
}

static uint32_t runStep(const DecodeStep &step, ComputeType compute, uint32_t a,
                        uint32_t b, uint32_t c) {
  switch (step.kind) {
  case DecodeStep::Kind::Lop3:
    return runLop3(a, b, c, step.imm);
  case DecodeStep::Kind::Prmt:
    return runPrmt(a, b, step.imm);
  case DecodeStep::Kind::Rotate:
    return a >> step.imm | a << (32 - step.imm);
  case DecodeStep::Kind::Fma:
    return fmaHalf(compute, a, b, c) |
           fmaHalf(compute, a >> 16, b >> 16, c >> 16) << 16;
  case DecodeStep::Kind::Mul32:
    return toBits(toFloat(a) * toFloat(b));
  case DecodeStep::Kind::Round:
    return encodeNumber(compute, toFloat(b)) | encodeNumber(compute, toFloat(a))
                                                   << 16;
  case DecodeStep::Kind::Mad:
    return a * b + c;
  }
  return 0;
}

std::vector<uint32_t>
DecodePlan::run(const Placement &placement, const std::vector<uint32_t> &words,
                const std::vector<uint32_t> &parameters) const {
  assert(static_cast<int>(words.size()) == placement.getNumWords() &&
         static_cast<int>(parameters.size()) == getNumParameters());
  std::vector<uint32_t> registers = words;
  registers.reserve(getFirstResult() + steps.size());
  registers.insert(registers.end(), parameters.begin(), parameters.end());
  auto read = [&](const DecodeOperand &operand) {
    return operand.isImmediate ? operand.value : registers[operand.value];
  };
  for (const DecodeStep &step : steps)
    registers.push_back(runStep(step, placement.getCompute(),
                                read(step.operands[0]), read(step.operands[1]),
                                read(step.operands[2])));
  std::vector<uint32_t> found;
  found.reserve(results.size());
  for (int result : results)
    found.push_back(registers[result]);
  return found;
}

//===----------------------------------------------------------------------===//
// Proof
//===----------------------------------------------------------------------===//

/// What all other bits hold while one weight is tried.
static std::vector<std::vector<uint32_t>> getBackgrounds(int numWords) {
  std::vector<std::vector<uint32_t>> backgrounds = {
      std::vector<uint32_t>(numWords, 0), std::vector<uint32_t>(numWords, ~0u)};
  uint32_t state = 0x9e3779b9;
  for (int round = 0; round < 2; ++round) {
    std::vector<uint32_t> words;
    words.reserve(numWords);
    for (int word = 0; word < numWords; ++word) {
      // xorshift32 (Marsaglia, 2003).
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      words.push_back(state);
    }
    backgrounds.push_back(words);
    for (uint32_t &word : words)
      word = ~word;
    backgrounds.push_back(words);
  }
  return backgrounds;
}

namespace {
/// A scale and a zero point that weights are tried with.
struct Parameters {
  double scale;
  double zero;
};
} // namespace

static std::vector<Parameters> getTrials(const DecodePlan &plan,
                                         const CodeFormat &format) {
  if (plan.ending != DecodeEnding::Weights)
    return {{1, 0}};
  if (format.kind == CodeFormat::Kind::Float)
    return {{1, 0}, {0.01318359375, 0}};
  double half = std::ldexp(1.0, format.bits - 1);
  return {{1, 0}, {1, half}, {0.01318359375, half}, {3, 2 * half - 1}};
}

/// The first thing in which a plan does not fit a placement; empty if none.
static std::string findMisfit(const DecodePlan &plan, const Placement &from) {
  if (from.isOfVectors())
    return "codes of vectors are looked up, and no plan decodes them";
  if (plan.numWords != from.getNumWords())
    return "expected " + std::to_string(from.getNumWords()) + " words, got " +
           std::to_string(plan.numWords);
  int numSteps = static_cast<int>(plan.steps.size());
  int numInputs = plan.getFirstResult();
  for (int index = 0; index < numSteps; ++index)
    for (int k = 0; k < plan.steps[index].getNumOperands(); ++k) {
      const DecodeOperand &operand = plan.steps[index].operands[k];
      if (!operand.isImmediate &&
          operand.value >= static_cast<uint32_t>(numInputs + index))
        return "step " + std::to_string(index) + " reads register " +
               std::to_string(operand.value) + ", which is not yet there";
    }
  if (plan.slots.size() != plan.results.size() || plan.slots.empty())
    return "expected a register for each slot, got " +
           std::to_string(plan.results.size()) + " for " +
           std::to_string(plan.slots.size());
  if (static_cast<int>(plan.rows.size()) != 2 * from.getNumRowTiles())
    return "expected " + std::to_string(2 * from.getNumRowTiles()) +
           " rows of slots, got " + std::to_string(plan.rows.size());
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    int slot = plan.slots[i], result = plan.results[i];
    if (slot < 0 || slot >= from.getNumSlots())
      return "slot " + std::to_string(slot) + " is outside of 0.." +
             std::to_string(from.getNumSlots() - 1);
    if (result < 0 || result >= numInputs + numSteps)
      return "slot " + std::to_string(slot) + " has the register " +
             std::to_string(result) + ", which does not exist";
  }
  return {};
}

Result<bool> DecodePlan::check() const {
  Result<const Placement *> from = Placement::find(placement);
  if (!from)
    return Error{from.error()};
  std::string misfit = findMisfit(*this, **from);
  if (!misfit.empty())
    return Error{"plan for " + placement + ": " + misfit};
  return true;
}

namespace {

/// What one row of scales and zero points makes of every code, by running the
/// plan.
class Trial {
public:
  Trial(const DecodePlan &plan, const Placement &from,
        const Parameters &parameters)
      : plan(plan), from(from), compute(from.getCompute()),
        scale(encodeNumber(compute, parameters.scale)), zero(parameters.zero) {
    uint32_t minusZero = encodeNumber(compute, -zero);
    for (int i = 0; i < plan.getNumParameters(); i += 2) {
      words.push_back(scale | scale << 16);
      words.push_back(minusZero | minusZero << 16);
    }
  }

  /// What is wrong with the plan's result for a code of that value, among other
  /// bits as in `background`; empty if nothing.
  std::string findFault(int code, double value,
                        const std::vector<uint32_t> &background) const {
    for (int phase = 0; phase < kPhases; ++phase) {
      std::vector<uint32_t> found =
          plan.run(from, place(code, phase, background), words);
      for (size_t i = 0; i < plan.slots.size(); ++i) {
        double expected = getExpected(plan.slots[i], value);
        for (int part = 0; part < from.getNumParts(); ++part) {
          if (!isTried(plan.slots[i], part, phase))
            continue;
          double got = getPart(found[i], part);
          if (got == expected)
            continue;
          std::ostringstream what;
          what << "code " << code << " at slot " << plan.slots[i] << ", part "
               << part << " becomes " << got << " and should be " << expected;
          return what.str();
        }
      }
    }
    return {};
  }

private:
  /// Of three neighbours one holds the code and the others do not.
  static constexpr int kPhases = 3;

  bool isTried(int slot, int part, int phase) const {
    return (slot * from.getNumParts() + part) % kPhases == phase;
  }

  std::vector<uint32_t> place(int code, int phase,
                              std::vector<uint32_t> background) const {
    int bits = from.getFormat().bits;
    for (int slot = 0; slot < from.getNumSlots(); ++slot)
      for (int part = 0; part < from.getNumParts(); ++part)
        for (int bit = 0; isTried(slot, part, phase) && bit < bits; ++bit) {
          BitPlace place = from.getPlace(slot, part, bit);
          background[place.word] &= ~(1u << place.bit);
          background[place.word] |= (code >> bit & 1u) << place.bit;
        }
    return background;
  }

  double getExpected(int slot, double value) const {
    const DecodePlan::Row &row = plan.rows[from.getRowOfSlot(slot)];
    if (plan.ending != DecodeEnding::Weights)
      return (value + row.offset) * row.getFactor();
    double scaled = decodeNumber(compute, scale) * (value - zero);
    return decodeNumber(compute, encodeNumber(compute, scaled));
  }

  double getPart(uint32_t reg, int part) const {
    int width = 32 / from.getNumParts();
    uint32_t bits = reg >> (width * part) & (width == 16 ? 0xffff : 0xff);
    return plan.ending == DecodeEnding::Unsigned ? bits
                                                 : decodeNumber(compute, bits);
  }

  const DecodePlan &plan;
  const Placement &from;
  ComputeType compute;
  uint32_t scale;
  double zero;
  /// Scales and zero points as the plan takes them.
  std::vector<uint32_t> words;
};

} // namespace

Result<bool> DecodePlan::prove(const Placement &from) const {
  auto fail = [&](const std::string &what) -> Result<bool> {
    return Error{"plan for " + placement + ": " + what};
  };
  if (from.name() != placement)
    return fail("the placement given is " + from.name());
  if (std::string misfit = findMisfit(*this, from); !misfit.empty())
    return fail(misfit);

  const CodeFormat &format = from.getFormat();
  std::vector<std::vector<uint32_t>> backgrounds =
      getBackgrounds(from.getNumWords());
  for (const Parameters &parameters : getTrials(*this, format)) {
    Trial trial(*this, from, parameters);
    for (const std::vector<uint32_t> &background : backgrounds)
      for (int code = 0; code < 1 << format.bits; ++code) {
        std::optional<double> value = format.value(static_cast<uint16_t>(code));
        if (!value)
          continue;
        std::string fault = trial.findFault(code, *value, background);
        if (!fault.empty())
          return fail(fault);
      }
    // What the other bits hold is tried once, further scales on two
    // backgrounds.
    backgrounds.resize(2);
  }
  return true;
}
