//===- FragmentFamily.cpp - What packed words become fragments of ---------===//
#include "lowlp/Decode/FragmentFamily.h"

#include <array>
#include <utility>

using namespace lowlp;

static constexpr std::array<std::pair<ComputeType, std::string_view>, 5>
    kComputeTypes = {{{ComputeType::F16, "f16"},
                      {ComputeType::BF16, "bf16"},
                      {ComputeType::S8, "int8"},
                      {ComputeType::E4M3, "f8e4m3"},
                      {ComputeType::B1, "b1"}}};

std::string lowlp::getName(ComputeType compute) {
  for (auto [type, name] : kComputeTypes)
    if (type == compute)
      return std::string(name);
  return {};
}

Result<ComputeType> lowlp::parseComputeType(std::string_view name) {
  for (auto [type, known] : kComputeTypes)
    if (known == name)
      return type;
  return Error{
      "compute type: must be one of f16, bf16, int8, f8e4m3, b1, got '" +
      std::string(name) + "'"};
}

std::string FragmentFamily::name() const {
  std::string name = getName(compute);
  return getUnitK() == getWidestUnitK() ? name
                                        : name + ".k" + std::to_string(unitK);
}

Result<FragmentFamily> FragmentFamily::parse(std::string_view name) {
  size_t dot = name.find('.');
  Result<ComputeType> compute = parseComputeType(name.substr(0, dot));
  if (!compute)
    return Error{compute.error()};
  for (int unitK : {64, 32, 16, 128, 256, 512, 1024})
    if (FragmentFamily family{*compute, Operand::A, unitK};
        (unitK == maxUnitK || family.getStepK() <= unitK) &&
        family.name() == name)
      return family;
  return Error{"fragment family: units have 64 weights of a row, '.k16' to "
               "'.k1024', but no less than " +
               std::to_string(FragmentFamily{*compute}.getStepK()) + "; got '" +
               std::string(name) + "'"};
}
