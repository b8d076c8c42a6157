//===- PlacementDraft.cpp - Placements while they are searched for --------===//
#include "PlacementDraft.h"

#include "MaskSearch.h"
#include "PieceSearch.h"

#include <cassert>

using namespace lowlp;

/// Tiles of 16 rows in a unit: enough for whole words in one step of few bits.
/// Those of 3 bits come in words of their own for each tile, as 5 and 7 bits
/// do, so that no two warps need the same words (ADR 0023).
static int getRowTiles(int bits) { return bits == 1 ? 4 : bits == 2 ? 2 : 1; }

PlacementDraft::PlacementDraft(const CodeFormat &format, ComputeType compute)
    : format(format), compute(compute), rowTiles(getRowTiles(format.bits)) {
  int steps = FragmentFamily{compute}.getNumSteps();
  for (numSteps = 1; format.bits * rowTiles * numSteps % steps; numSteps *= 2)
    ;
  places.assign(static_cast<size_t>(rowTiles) * numSteps * 4,
                std::vector<BitPlace>(format.bits, BitPlace{-1, 0}));
}

int PlacementDraft::getRow(int index) const {
  return index / (4 * numSteps) * 2 + index % 2;
}

Placement PlacementDraft::make() const {
  int parts = FragmentFamily{compute}.getParts();
  int steps = FragmentFamily{compute}.getNumSteps();
  std::vector<BitPlace> all;
  for (int tile = 0; tile < rowTiles; ++tile)
    for (int step = 0; step < steps; ++step)
      for (int place = 0; place < 4; ++place)
        for (int part = 0; part < parts; ++part)
          for (const BitPlace &first :
               places[(tile * numSteps + step % numSteps) * 4 + place])
            all.push_back({first.word + step / numSteps * getNumWords(),
                           (first.bit + part * 32 / parts) % 32});
  Result<Placement> made =
      Placement::create(format, compute, rowTiles, std::move(all));
  assert(made && "a draft takes every bit once");
  return *made;
}

int PlacementDraft::getCost() const {
  Placement placement = make();
  Period period(placement);
  Result<Homes> homes = Homes::get(format, compute);
  // A draft may repeat sooner than it has to.
  int copies = getNumSlots() / period.getNumSlots();
  if (homes->kind == Homes::Kind::Linear && homes->hasFma())
    if (auto plan = PiecePlan::search(
            period, *homes, DecodeEnding::Accumulators, kReferenceRates))
      return plan->getCost() * copies;
  return MaskPlan::search(period, *homes, DecodeEnding::Accumulators,
                          kReferenceRates)
             .getCost() *
         copies;
}

void lowlp::improveRows(PlacementDraft &draft) {
  int best = draft.getCost();
  for (bool isBetter = true; isBetter;) {
    isBetter = false;
    for (int a = 0; a < draft.getNumSlots(); ++a)
      for (int b = a + 1; b < draft.getNumSlots(); ++b) {
        if (draft.getRow(a) == draft.getRow(b))
          continue;
        std::swap(draft.places[a], draft.places[b]);
        if (int cost = draft.getCost(); cost < best) {
          best = cost;
          isBetter = true;
        } else {
          std::swap(draft.places[a], draft.places[b]);
        }
      }
  }
}
