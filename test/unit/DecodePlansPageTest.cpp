//===- DecodePlansPageTest.cpp - The table of docs/decode-plans.md --------===//
#include "lowlp/Decode/SequenceSearch.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

using namespace lowlp;

static constexpr std::string_view kStart = "<!-- costs: start -->\n";
static constexpr std::string_view kEnd = "<!-- costs: end -->";

/// Instructions a register by pipe, as 1.50 + 0.38; a dash if there is no plan.
static std::string getCell(const CodeFormat &format, ComputeType compute,
                           DecodeEnding ending) {
  Result<const Placement *> placement = Placement::find(format, compute);
  if (!placement)
    return "-";
  Result<DecodePlan> plan = planDecode(**placement, ending, DecodeRates());
  if (!plan)
    return "-";
  DecodeCost cost = plan->getCost();
  std::string cell;
  for (int count : {cost.alu, cost.fma, cost.convert}) {
    if (!count && !cell.empty())
      continue;
    char text[32];
    std::snprintf(text, sizeof(text), "%s%.2f", cell.empty() ? "" : " + ",
                  static_cast<double>(count) / plan->getNumRegisters());
    cell += text;
  }
  return cell;
}

static std::string getTable() {
  std::ostringstream table;
  table << "| Codes | f16, accumulators | f16, weights | bf16, accumulators | "
           "bf16, weights | "
           "int8 | f8e4m3 |\n|---|---|---|---|---|---|---|\n";
  std::string last;
  for (const Placement &placement : Placement::all()) {
    const CodeFormat &format = placement.getFormat();
    if (format.kind == CodeFormat::Kind::Table || format.name() == last)
      continue;
    last = format.name();
    table << "| " << last;
    for (ComputeType compute : {ComputeType::F16, ComputeType::BF16})
      for (DecodeEnding ending :
           {DecodeEnding::Accumulators, DecodeEnding::Weights})
        table << " | " << getCell(format, compute, ending);
    for (ComputeType compute : {ComputeType::S8, ComputeType::E4M3})
      table << " | " << getCell(format, compute, DecodeEnding::Accumulators);
    table << " |\n";
  }
  return table.str();
}

TEST(DecodePlansPageTest, TableIsRight) {
  std::ifstream file(LOWLP_DOCS "/decode-plans.md");
  std::stringstream page;
  page << file.rdbuf();
  size_t start = page.str().find(kStart);
  size_t end = page.str().find(kEnd);
  ASSERT_NE(start, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  start += kStart.size();
  EXPECT_EQ(page.str().substr(start, end - start), getTable());
}
