//===- PlacementSearch.cpp - Where bits had best be -----------------------===//
#include "PlacementDraft.h"

using namespace lowlp;

static std::vector<CodeFormat> getFormats() {
  std::vector<CodeFormat> formats;
  for (int bits = 1; bits <= ScalarFormat::maxCodeBits; ++bits)
    formats.push_back({CodeFormat::Kind::Integer, bits});
  for (int bits = 3; bits <= ScalarFormat::maxCodeBits; ++bits)
    for (int exponent = 1; exponent < bits; ++exponent)
      formats.push_back(
          {CodeFormat::Kind::Float, bits, exponent, bits - 1 - exponent});
  for (int bits = 1; bits <= ScalarFormat::maxCodeBits; ++bits)
    formats.push_back({CodeFormat::Kind::Table, bits});
  return formats;
}

std::vector<std::pair<CodeFormat, ComputeType>> lowlp::getPackedFormats() {
  std::vector<std::pair<CodeFormat, ComputeType>> pairs;
  for (const CodeFormat &format : getFormats())
    for (ComputeType compute : {ComputeType::F16, ComputeType::BF16,
                                ComputeType::S8, ComputeType::E4M3})
      if (FragmentFamily{compute}.getParts() == 2 ||
          Homes::get(format, compute))
        pairs.push_back({format, compute});
  return pairs;
}

/// Widths of a table's slices, the low bits first: powers of two (FLUTE,
/// section 3.1).
static std::vector<int> getSlices(int bits) {
  std::vector<int> slices;
  for (int width = 8; width; width /= 2)
    if (bits & width)
      slices.push_back(width);
  return slices;
}

Result<Placement> lowlp::searchPlacement(CodeFormat format,
                                         ComputeType compute) {
  Result<Homes> homes = Homes::get(format, compute);
  if (!homes && FragmentFamily{compute}.getParts() != 2)
    return Error{homes.error()};
  if (!homes) {
    std::vector<int> slices = {format.bits};
    if (format.kind == CodeFormat::Kind::Table)
      slices = getSlices(format.bits);
    int tiles = PlacementDraft(format, compute).rowTiles;
    return Placement::contiguous(format, compute, tiles, slices);
  }
  if (homes->kind == Homes::Kind::Linear && homes->hasFma())
    return searchRuns(format, compute).make();
  return searchShapes(*homes).make();
}
