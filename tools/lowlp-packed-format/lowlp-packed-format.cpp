//===- lowlp-packed-format.cpp - Writes the packed format -----------------===//
//
//   lowlp-packed-format > dialect/lib/Decode/packed-format-5.txt
//
// Searches for every placement anew. The file is what packed weights are read
// by: once released it changes only together with its version.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Decode/PlacementSearch.h"

#include <cstdio>

using namespace lowlp;

int main() {
  std::printf(
      "# Packed format %d: where each bit of a unit of weights is. Made "
      "by lowlp-packed-format; read by PlacementText.cpp.\n",
      Placement::formatVersion);
  for (auto [format, compute] : getPackedFormats()) {
    Result<Placement> placement = searchPlacement(format, compute);
    if (!placement) {
      std::fprintf(stderr, "%s\n", placement.error().c_str());
      return 1;
    }
    std::printf("%s", printPlacements({*placement}).c_str());
    std::fflush(stdout);
  }
  return 0;
}
