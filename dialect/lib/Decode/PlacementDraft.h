//===- PlacementDraft.h - Placements while they are searched for -*- C++
//-*-===//
#ifndef LOWLP_LIB_DECODE_PLACEMENTDRAFT_H
#define LOWLP_LIB_DECODE_PLACEMENTDRAFT_H

#include "Homes.h"
#include "lowlp/Decode/PlacementSearch.h"

namespace lowlp {

/// The first block of a placement whose parts lie alike (Period.h).
class PlacementDraft {
public:
  /// Words with a whole number of slots: the shortest such block.
  PlacementDraft(const CodeFormat &format, ComputeType compute);

  int getNumSlots() const { return static_cast<int>(places.size()); }
  int getNumRows() const { return 2 * rowTiles; }
  int getNumWords() const {
    return getNumSlots() * format.bits / getNumResidues();
  }
  /// Bits of a part of a register: what parts that lie alike share out.
  int getNumResidues() const { return 32 / FragmentFamily{compute}.getParts(); }
  /// The row of the i-th slot of the block.
  int getRow(int index) const;
  /// Requires: every residue of every word is taken once.
  Placement make() const;
  /// What all slots of the block cost on accumulators by `kReferenceRates`.
  int getCost() const;

  CodeFormat format;
  ComputeType compute;
  int rowTiles;
  /// Steps of the block.
  int numSteps;
  /// By slot and bit of the code: where part 0 is.
  std::vector<std::vector<BitPlace>> places;
};

/// Swaps slots of different rows as long as that saves anything.
void improveRows(PlacementDraft &draft);

/// The search for integers in f16 and bf16 (RunPlacement.cpp).
PlacementDraft searchRuns(const CodeFormat &format, ComputeType compute);

/// The search for all else (ShapePlacement.cpp).
PlacementDraft searchShapes(const Homes &homes);

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_PLACEMENTDRAFT_H
