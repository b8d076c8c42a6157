//===- PackedTile.h - A tile of weights in packed words ---------*- C++ -*-===//
#ifndef LOWLP_DECODE_PACKEDTILE_H
#define LOWLP_DECODE_PACKEDTILE_H

#include "lowlp/Decode/Placement.h"
#include "lowlp/Layout/Layout.h"

namespace lowlp {

/// How a tile of weights in registers relates to the words of the units that it
/// is taken from. The same for all threads, but for the tile of 16 rows where
/// the warps share a unit.
struct PackedTile {
  struct Place {
    int unit;
    int slot;
    int part;
  };

  /// Holds the words, a tile of shape [units of rows, units of K, 32 words].
  Layout words;
  /// By local index of a weight: the unit, of those that a thread holds words
  /// of, and the place in it. Slots are those of the first warp.
  std::vector<Place> places;
  /// By unit and word: the local index in `words`.
  std::vector<std::vector<int>> wordLocals;
  /// By warp: what is added to the slots of `places`.
  std::vector<int> slotOffsets;

  int getNumUnits() const { return static_cast<int>(wordLocals.size()); }
  /// The slots that the tile takes from every unit, ascending.
  std::vector<int> getSlots() const;
};

/// How the tile that `weights` holds, which begins at a unit's row and at step
/// `firstStep` of a unit, is taken from packed words. Fails unless a warp holds
/// whole fragments of operand A, and warps hold units, or their steps, in the
/// order of
///
///   local(R, n).column_local(2, 2).spatial(8, 4).local(1, L)
///
/// with n of the unit's steps, or share the R tiles of units as
/// spatial(R, 1).local(1, n). ... does.
Result<PackedTile> matchPackedTile(const Layout &weights,
                                   const Placement &placement, int firstStep);

} // namespace lowlp

#endif // LOWLP_DECODE_PACKEDTILE_H
