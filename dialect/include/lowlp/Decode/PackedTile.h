//===- PackedTile.h - A tile of weights in packed words ---------*- C++ -*-===//
#ifndef LOWLP_DECODE_PACKEDTILE_H
#define LOWLP_DECODE_PACKEDTILE_H

#include "lowlp/Decode/Placement.h"
#include "lowlp/Layout/Layout.h"

#include <optional>
#include <vector>

namespace lowlp {

/// How far the bits of a tile of 16 rows are from those of the tile before it:
/// so many words, and so many bits further on within a word, modulo 32.
struct TileShift {
  int words;
  int bits;
  bool operator==(const TileShift &other) const {
    return words == other.words && bits == other.bits;
  }
};

/// How the tiles of a unit follow each other, if all do alike: then the words
/// of tile t, moved back t times as far, are as those of tile 0.
std::optional<TileShift> findTileShift(const Placement &placement);

/// The slots of a tile of 16 rows of a unit, ascending.
std::vector<int> getSlotsOfTile(const Placement &placement, int tile);

/// How a tile of weights in registers relates to the words of the units that it
/// is taken from. The same for all threads, but for the tile of 16 rows where
/// warps share units.
struct PackedTile {
  struct Place {
    int unit;
    int slot;
    int part;
  };

  /// Holds the words, a tile of shape [units of rows, units of K, 32 words].
  Layout words;
  /// By local index of a weight: the unit, of those that a thread holds words
  /// of, and the place in it. Slots are those of the first warp, of tile 0
  /// where warps share units.
  std::vector<Place> places;
  /// By unit and word: the local index in `words`.
  std::vector<std::vector<int>> wordLocals;
  /// Whether warp w takes tile w mod R of its units, not all R tiles.
  bool areUnitsShared = false;

  int getNumUnits() const { return static_cast<int>(wordLocals.size()); }
  /// The slots that the tile takes from every unit, ascending.
  std::vector<int> getSlots() const;
};

/// How the tile that `weights` holds, which begins at a unit's row and at step
/// `firstStep` of a unit, is taken from packed words; of vectors a tile of the
/// codes of all `r` books, or of one. Fails unless a warp holds
/// whole fragments of operand A, and warps hold units, or their steps, in the
/// order of
///
///   local(R, n).column_local(2, 2).spatial(8, 4).local(1, L)
///
/// with n of the unit's steps, or share the R tiles of units as
/// spatial(R, 1).local(1, n). ... does. Codes of vectors are held as
///
///   local(R, n).local(2, 1).spatial(8, 4).local(1, r)
///
/// or likewise with tiles shared. Where n is less than a unit has, the
/// next n steps of the tile, of another warp, are those of the next unit.
Result<PackedTile> matchPackedTile(const Layout &weights,
                                   const Placement &placement, int firstStep,
                                   std::optional<int> book = std::nullopt);

} // namespace lowlp

#endif // LOWLP_DECODE_PACKEDTILE_H
