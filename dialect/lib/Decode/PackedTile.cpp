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
  std::vector<int> slots(placement.getSlotsPerTile());
  std::iota(slots.begin(), slots.end(), tile * static_cast<int>(slots.size()));
  return slots;
}

std::optional<TileShift> lowlp::findTileShift(const Placement &placement) {
  if (placement.getNumRowTiles() == 1)
    return TileShift{0, 0};
  int slotsOfTile = placement.getSlotsPerTile();
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
/// What the row, or the column, of an element of a tile of weights adds to the
/// place where it lies: the unit in the tile along this dimension, and the lane
/// and slot in the unit. A column also tells the part of the slot.
struct WeightPlace {
  int64_t unit;
  int lane, slot, part;
};
} // namespace

static std::vector<WeightPlace> placeRows(const Placement &placement,
                                          int64_t rows) {
  std::vector<WeightPlace> places;
  for (int64_t row = 0; row < rows; ++row) {
    int inRow = static_cast<int>(row % placement.getUnitRows());
    places.push_back({row / placement.getUnitRows(), inRow % 8 * 4,
                      inRow / 16 * placement.getSlotsPerTile() + inRow / 8 % 2,
                      /*part=*/0});
  }
  return places;
}

/// Of a unit `steps` steps are taken, from `firstStep` on.
static std::vector<WeightPlace> placeColumns(const Placement &placement,
                                             int firstStep, int64_t steps,
                                             std::optional<int> book,
                                             int64_t columns) {
  int parts = book ? 1 : placement.getNumParts();
  int halves = placement.getSlotsPerStep() / 2;
  int perStep = 4 * halves * parts;
  int64_t perUnit = steps * perStep;
  std::vector<WeightPlace> places;
  for (int64_t column = 0; column < columns; ++column) {
    int inK = firstStep * perStep + static_cast<int>(column % perUnit);
    int step = inK / perStep, half = inK / (4 * parts) % halves;
    places.push_back({column / perUnit, inK / parts % 4,
                      2 * (step * halves + half), book ? *book : inK % parts});
  }
  return places;
}

namespace {
/// The registers of thread 0's words, unit by unit, and the number of each unit
/// by its row and step, in the order of the thread's words. Other threads hold
/// the same words of units that are as far apart, since the words of all units
/// are held alike (`getWordsOfUnit`).
struct HeldWords {
  std::map<std::pair<int64_t, int64_t>, int> units;
  std::vector<std::vector<int>> locals;

  HeldWords(const Layout &words, const Placement &placement) {
    int64_t width = placement.getWordsPerAccess();
    std::vector<int64_t> index(3);
    for (int64_t local = 0; local < words.numLocals(); ++local) {
      words.evaluateInto(/*thread=*/0, local, index.data());
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
  std::vector<WeightPlace> rows = placeRows(placement, weights.shape()[0]);
  std::vector<WeightPlace> columns =
      placeColumns(placement, firstStep, steps, book, weights.shape()[1]);
  // Indices are f(t, 0) + f(0, i).
  int64_t count = weights.numLocals();
  std::vector<int64_t> ofLocals(2 * count);
  for (int64_t local = 0; local < count; ++local)
    weights.evaluateInto(/*thread=*/0, local, &ofLocals[2 * local]);

  HeldWords held(found.words, placement);
  for (int64_t local = 0; local < count; ++local) {
    const WeightPlace &row = rows[ofLocals[2 * local]];
    const WeightPlace &column = columns[ofLocals[2 * local + 1]];
    auto unit = held.units.find({row.unit, column.unit});
    if (unit == held.units.end() || row.lane + column.lane != 0)
      return "takes weights from words that a thread does not hold";
    found.places.push_back({unit->second, row.slot + column.slot, column.part});
  }
  found.wordLocals = std::move(held.locals);

  std::vector<int64_t> ofThread(2), words(3);
  for (int64_t thread = 1; thread < weights.numThreads(); ++thread) {
    weights.evaluateInto(thread, /*local=*/0, ofThread.data());
    found.words.evaluateInto(thread, /*local=*/0, words.data());
    int64_t tile =
        found.areUnitsShared ? thread / 32 % placement.getNumRowTiles() : 0;
    for (int64_t local = 0; local < count; ++local) {
      int64_t firstRow = ofLocals[2 * local];
      int64_t firstColumn = ofLocals[2 * local + 1];
      const WeightPlace &row = rows[ofThread[0] + firstRow];
      const WeightPlace &column = columns[ofThread[1] + firstColumn];
      const PackedTile::Place &first = found.places[local];
      if (row.unit != words[0] + rows[firstRow].unit ||
          column.unit != words[1] + columns[firstColumn].unit ||
          row.lane + column.lane != thread % 32)
        return "takes weights from words that a thread does not hold";
      if (column.part != first.part ||
          row.slot + column.slot !=
              first.slot + tile * placement.getSlotsPerTile())
        return "takes other weights of a unit in some threads";
    }
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
