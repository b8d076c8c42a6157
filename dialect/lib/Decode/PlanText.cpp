//===- PlanText.cpp - Decode plans as text --------------------------------===//
//
//   decode int4.f16 accumulators words 4
//   row 0 exponent -24
//   row 1 exponent -20
//   r4 = lop3 r0, 0x000f000f, 0, 0xc0
//   r5 = rotate r0, 8
//   slot 0 = r4
//
//===----------------------------------------------------------------------===//
#include "lowlp/Decode/DecodePlan.h"

#include <array>
#include <cstdio>
#include <iomanip>
#include <sstream>

using namespace lowlp;

namespace {
struct Mnemonic {
  DecodeStep::Kind kind;
  const char *name;
  /// Whether a number follows the operands.
  bool hasImmediate;
};
} // namespace

static constexpr std::array<Mnemonic, 7> kMnemonics = {
    {{DecodeStep::Kind::Lop3, "lop3", true},
     {DecodeStep::Kind::Prmt, "prmt", true},
     {DecodeStep::Kind::Rotate, "rotate", true},
     {DecodeStep::Kind::Fma, "fma", false},
     {DecodeStep::Kind::Mul32, "mul32", false},
     {DecodeStep::Kind::Round, "round", false},
     {DecodeStep::Kind::Mad, "mad", false}}};

static const Mnemonic &getMnemonic(DecodeStep::Kind kind) {
  return kMnemonics[static_cast<size_t>(kind)];
}

static std::string printHex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x", value);
  return text;
}

static const char *nameEnding(DecodeEnding ending) {
  switch (ending) {
  case DecodeEnding::Accumulators:
    return "accumulators";
  case DecodeEnding::Weights:
    return "weights";
  case DecodeEnding::Unsigned:
    return "unsigned";
  }
  return "";
}

static bool parseEnding(const std::string &name, DecodeEnding &ending) {
  for (DecodeEnding known : {DecodeEnding::Accumulators, DecodeEnding::Weights,
                             DecodeEnding::Unsigned}) {
    if (name != nameEnding(known))
      continue;
    ending = known;
    return true;
  }
  return false;
}

std::string DecodePlan::print() const {
  std::ostringstream out;
  out << "decode " << placement << " " << nameEnding(ending) << " words "
      << numWords << "\n";
  out.precision(17);
  for (size_t row = 0; row < rows.size(); ++row) {
    out << "row " << row << " exponent " << rows[row].exponent;
    if (rows[row].offset != 0)
      out << " offset " << rows[row].offset;
    if (rows[row].isNegated)
      out << " negated";
    out << "\n";
  }
  int next = getFirstResult();
  for (const DecodeStep &step : steps) {
    const Mnemonic &mnemonic = getMnemonic(step.kind);
    out << "r" << next++ << " = " << mnemonic.name << " ";
    for (int k = 0; k < step.getNumOperands(); ++k) {
      const DecodeOperand &operand = step.operands[k];
      out << (k ? ", " : "");
      if (operand.isImmediate)
        out << printHex(operand.value);
      else
        out << "r" << operand.value;
    }
    if (mnemonic.hasImmediate)
      out << ", " << printHex(step.imm);
    out << "\n";
  }
  for (size_t i = 0; i < slots.size(); ++i)
    out << "slot " << slots[i] << " = r" << results[i] << "\n";
  return out.str();
}

namespace {
/// Reads words, registers and numbers of one line.
class LineReader {
public:
  explicit LineReader(const std::string &line) : in(line) {}

  bool word(const std::string &expected) {
    std::string found;
    return (in >> found) && found == expected;
  }
  bool name(std::string &found) { return static_cast<bool>(in >> found); }
  template <typename T> bool number(T &found) {
    return static_cast<bool>(in >> found);
  }
  bool reg(int &found) {
    char letter = 0;
    return (in >> letter >> found) && letter == 'r' && found >= 0;
  }
  bool operand(DecodeOperand &found) {
    in >> std::ws;
    if (in.peek() == 'r') {
      int index;
      if (!reg(index))
        return false;
      found = DecodeOperand::reg(index);
      return true;
    }
    uint32_t value;
    if (!hex(value))
      return false;
    found = DecodeOperand::imm(value);
    return true;
  }
  bool hex(uint32_t &found) {
    in >> std::ws;
    bool good = static_cast<bool>(in >> std::setbase(0) >> found);
    return good;
  }
  bool comma() { return punctuation(','); }
  bool equals() { return punctuation('='); }
  /// Whether the next word is this one, which is read then.
  bool take(const std::string &expected) {
    if (end())
      return false;
    std::streampos place = in.tellg();
    std::string found;
    if (in >> found && found == expected)
      return true;
    in.clear();
    in.seekg(place);
    return false;
  }
  bool end() {
    in >> std::ws;
    return in.eof();
  }

private:
  bool punctuation(char expected) {
    char found = 0;
    return (in >> found) && found == expected;
  }
  std::istringstream in;
};
} // namespace

static bool parseHeader(LineReader &line, DecodePlan &plan) {
  std::string ending;
  if (!line.name(plan.placement) || !line.name(ending) || !line.word("words") ||
      !line.number(plan.numWords))
    return false;
  return plan.numWords > 0 && parseEnding(ending, plan.ending);
}

static bool parseRow(LineReader &line, DecodePlan &plan) {
  size_t index;
  DecodePlan::Row row;
  if (!line.number(index) || index != plan.rows.size() ||
      !line.word("exponent") || !line.number(row.exponent))
    return false;
  if (line.take("offset") && !line.number(row.offset))
    return false;
  row.isNegated = line.take("negated");
  if (!line.end())
    return false;
  plan.rows.push_back(row);
  return true;
}

static bool parseSlot(LineReader &line, DecodePlan &plan) {
  int slot, result;
  if (!line.number(slot) || !line.equals() || !line.reg(result))
    return false;
  plan.slots.push_back(slot);
  plan.results.push_back(result);
  return true;
}

/// Reads what follows the name of the register that a step defines.
static bool parseStep(LineReader &line, DecodePlan &plan) {
  std::string name;
  if (!line.equals() || !line.name(name))
    return false;
  for (const Mnemonic &mnemonic : kMnemonics) {
    if (name != mnemonic.name)
      continue;
    DecodeStep step{mnemonic.kind};
    for (int k = 0; k < step.getNumOperands(); ++k)
      if ((k && !line.comma()) || !line.operand(step.operands[k]))
        return false;
    if (mnemonic.hasImmediate && (!line.comma() || !line.hex(step.imm)))
      return false;
    if (step.kind == DecodeStep::Kind::Rotate &&
        (step.imm < 1 || step.imm > 31))
      return false;
    plan.steps.push_back(step);
    return true;
  }
  return false;
}

Result<DecodePlan> DecodePlan::parse(std::string_view text) {
  DecodePlan plan;
  std::istringstream lines{std::string(text)};
  std::string content;
  for (int number = 1; std::getline(lines, content); ++number) {
    LineReader line(content);
    std::string first;
    bool good = line.name(first);
    if (!good)
      continue;
    if (first == "decode")
      good = number == 1 && parseHeader(line, plan);
    else if (first == "row")
      good = parseRow(line, plan);
    else if (first == "slot")
      good = parseSlot(line, plan);
    else
      good = first == "r" + std::to_string(plan.getFirstResult() +
                                           plan.steps.size()) &&
             parseStep(line, plan);
    if (!good || !line.end() || plan.placement.empty())
      return Error{"decode plan: line " + std::to_string(number) +
                   " is not understood: '" + content + "'"};
  }
  if (plan.placement.empty())
    return Error{
        "decode plan: expected 'decode NAME accumulators|weights|unsigned "
        "words W' in the first line"};
  return plan;
}
