//===- PackedTile.cpp - A tile of weights in packed words -----------------===//
#include "lowlp/Decode/PackedTile.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace lowlp;

std::vector<int> lowlp::getSlotsOfTile(const Placement &placement, int tile) {
  std::vector<int> slots(static_cast<size_t>(placement.getNumSteps()) *
                         placement.getSlotsPerStep());
  std::iota(slots.begin(), slots.end(), tile * static_cast<int>(slots.size()));
  return slots;
}

std::optional<TileShift> lowlp::findTileShift(const Placement &placement) {
  if (placement.getNumRowTiles() == 1)
    return TileShift{0, 0};
  int slotsOfTile = placement.getSlotsPerStep() * placement.getNumSteps();
  std::optional<TileShift> shift;
  for (int slot = slotsOfTile; slot < placement.getNumSlots(); ++slot)
    for (int part = 0; part < placement.getNumParts(); ++part)
      for (int bit = 0; bit < placement.getFormat().bits; ++bit) {
        BitPlace place = placement.getPlace(slot, part, bit);
        BitPlace before = placement.getPlace(slot - slotsOfTile, part, bit);
        TileShift found{place.word - before.word,
                        (place.bit - before.bit + 32) % 32};
        if (shift && !(*shift == found))
          return std::nullopt;
        shift = found;
      }
  return shift;
}

std::vector<int> PackedTile::getSlots() const {
  std::set<int> slots;
  for (const Place &place : places)
    slots.insert(place.slot);
  return {slots.begin(), slots.end()};
}

/// The registers of a warp that hold 16 rows of one step.
static Layout getFragment(const Placement &placement, std::optional<int> book) {
  if (placement.isOfVectors())
    return Layout::local({2, 1}) * Layout::spatial({8, 4}) *
           Layout::local({1, book ? 1 : placement.getNumParts()});
  return Layout::columnLocal({2, 2}) * Layout::spatial({8, 4}) *
         Layout::local({1, placement.getNumParts()});
}

/// The words of a unit, of shape [1, 1, 32 words].
static Layout getWordsOfUnit(const Placement &placement) {
  int width = placement.getWordsPerAccess();
  return Layout::local({1, 1, placement.getNumWords() / width}) *
         Layout::spatial({1, 1, FragmentFamily::lanes}) *
         Layout::local({1, 1, width});
}

/// How many steps of a unit a warp takes: those that it holds along K, or all
/// where it holds whole units.
static int64_t getStepsOfUnit(const Layout &tiles, const Placement &placement) {
  std::vector<int64_t> index(2);
  std::set<int64_t> steps;
  for (int64_t local = 0; local < tiles.numLocals(); ++local) {
    tiles.evaluateInto(/*thread=*/0, local, index.data());
    steps.insert(index[1]);
  }
  return std::min<int64_t>(static_cast<int64_t>(steps.size()),
                           placement.getNumSteps());
}

/// Finds the layout of the words for a tile of fragments that `tiles` spreads
/// over warps, if it has one of the two forms, with so many steps of a unit.
static bool findWords(const Layout &tiles, int64_t steps,
                      const Placement &placement, PackedTile &found) {
  int64_t rowTiles = placement.getNumRowTiles();
  Layout words = getWordsOfUnit(placement);
  if (Result<Layout> units =
          divideRight(tiles, Layout::local({rowTiles, steps}))) {
    found.words = *unsqueeze(*units, {2}) * words;
    return true;
  }
  Layout shared = Layout::spatial({rowTiles, 1}) * Layout::local({1, steps});
  if (Result<Layout> units = divideRight(tiles, shared)) {
    Layout copies = *reduce(Layout::spatial({rowTiles, 1, 1}), {0},
                            /*keepDims=*/true);
    found.words = *unsqueeze(*units, {2}) * copies * words;
    found.areUnitsShared = true;
    return true;
  }
  return false;
}

namespace {
/// Where an element of a tile of weights lies: the unit in the tile, and the
/// place in the unit.
struct WeightPlace {
  int64_t unitRow, unitStep;
  int lane, slot, part;

  WeightPlace(const Placement &placement, int firstStep, int64_t steps,
              std::optional<int> book, int64_t row, int64_t k) {
    int parts = book ? 1 : placement.getNumParts();
    int halves = placement.getSlotsPerStep() / 2;
    int64_t perStep = 4 * halves * parts;
    unitRow = row / placement.getUnitRows();
    unitStep = k / (steps * perStep);
    int inRow = static_cast<int>(row % placement.getUnitRows());
    int inK = static_cast<int>(firstStep * perStep + k % (steps * perStep));
    int step = inK / static_cast<int>(perStep);
    int half = inK / (4 * parts) % halves;
    lane = inRow % 8 * 4 + inK / parts % 4;
    slot = (inRow / 16 * placement.getNumSteps() + step) * 2 * halves +
           inRow / 8 % 2 + 2 * half;
    part = book ? *book : inK % parts;
  }
};

/// The registers of a thread's words, unit by unit, and the number of each unit
/// by its row and step, in the order of the thread's words.
struct HeldWords {
  std::map<std::pair<int64_t, int64_t>, int> units;
  std::vector<std::vector<int>> locals;

  HeldWords(const Layout &words, const Placement &placement, int64_t thread) {
    int width = placement.getWordsPerAccess();
    std::vector<int64_t> index(3);
    for (int64_t local = 0; local < words.numLocals(); ++local) {
      words.evaluateInto(thread, local, index.data());
      auto [unit, isNew] =
          units.try_emplace({index[0], index[1]}, locals.size());
      if (isNew)
        locals.emplace_back(placement.getNumWords(), -1);
      int64_t word =
          index[2] / (FragmentFamily::lanes * width) * width + index[2] % width;
      locals[unit->second][word] = static_cast<int>(local);
    }
  }
};
} // namespace

/// Notes where each weight of a thread lies in its words, which must be the
/// same for all threads; returns what prevents that, or nothing. A thread takes
/// `steps` steps of a unit, from `firstStep` on.
static std::string placeWeights(const Layout &weights,
                                const Placement &placement, int firstStep,
                                int64_t steps, std::optional<int> book,
                                PackedTile &found) {
  int slotsOfRowTile = placement.getSlotsPerStep() * placement.getNumSteps();
  std::vector<int64_t> index(2);
  for (int64_t thread = 0; thread < weights.numThreads(); ++thread) {
    HeldWords held(found.words, placement, thread);
    bool isFirst = thread == 0;
    if (isFirst)
      found.wordLocals = held.locals;
    int64_t tile =
        found.areUnitsShared ? thread / 32 % placement.getNumRowTiles() : 0;
    for (int64_t local = 0; local < weights.numLocals(); ++local) {
      weights.evaluateInto(thread, local, index.data());
      WeightPlace place(placement, firstStep, steps, book, index[0], index[1]);
      auto unit = held.units.find({place.unitRow, place.unitStep});
      if (unit == held.units.end() || place.lane != thread % 32)
        return "takes weights from words that a thread does not hold";
      if (isFirst)
        found.places.push_back({unit->second, place.slot, place.part});
      const PackedTile::Place &first = found.places[local];
      if (unit->second != first.unit || place.part != first.part ||
          place.slot != first.slot + tile * slotsOfRowTile)
        return "takes other weights of a unit in some threads";
    }
    if (held.locals != found.wordLocals)
      return "holds words in another order in some threads";
  }
  return {};
}

Result<PackedTile> lowlp::matchPackedTile(const Layout &weights,
                                          const Placement &placement,
                                          int firstStep,
                                          std::optional<int> book) {
  auto fail = [&](const std::string &what) -> Result<PackedTile> {
    return Error{"the layout " + str(weights) + " " + what};
  };
  Layout fragment = getFragment(placement, book);
  int64_t rowTiles = placement.getNumRowTiles();
  std::string form =
      "local(" + std::to_string(rowTiles) + ", n)." + str(fragment);
  if (weights.rank() != 2)
    return fail("must have 2 dimensions");
  Result<Layout> tiles = divideRight(weights, fragment);
  PackedTile found;
  int64_t steps = tiles ? getStepsOfUnit(*tiles, placement) : 0;
  if (!tiles || tiles->numThreads() * 32 != weights.numThreads() ||
      !findWords(*tiles, steps, placement, found))
    return fail("takes no units of " + placement.name() +
                ", which are held as " + form + ", n of the " +
                std::to_string(placement.getNumSteps()) + " steps");
  int unitSteps = placement.getNumSteps();
  if (firstStep < 0 || firstStep >= unitSteps)
    return fail("cannot begin at step " + std::to_string(firstStep) + " of " +
                std::to_string(unitSteps));
  if (firstStep + steps > unitSteps)
    return fail("has " + std::to_string(steps) + " steps from step " +
                std::to_string(firstStep) + " on, and a unit has " +
                std::to_string(unitSteps));

  std::string fault =
      placeWeights(weights, placement, firstStep, steps, book, found);
  if (!fault.empty())
    return fail(fault);
  return found;
}
