//===- UnitPlanes.h - A unit of weights, one byte of all lanes at a time --===//
#ifndef LOWLP_LIB_DECODE_UNITPLANES_H
#define LOWLP_LIB_DECODE_UNITPLANES_H

#include "lowlp/Decode/Packing.h"

#include <array>

namespace lowlp {

/// A byte of each lane.
struct alignas(FragmentFamily::lanes) Plane {
  std::array<uint64_t, FragmentFamily::lanes / 8> eightLanes;

  uint8_t *bytes() { return reinterpret_cast<uint8_t *>(eightLanes.data()); }
  const uint8_t *bytes() const {
    return reinterpret_cast<const uint8_t *>(eightLanes.data());
  }
};
static_assert(sizeof(Plane) == FragmentFamily::lanes);

/// The codes of a unit, by `BitMove::codeByte`, or the bytes of its words, 4 *
/// word + byte: at most 32 for each of 4 row tiles, or 2 for each of 128 codes
/// of vectors.
using Planes = std::array<Plane, 256>;

/// How the planes of packed bytes are made of those of codes, and these of
/// those. On the way a code is turned into the stored one, `code ^ flip`, and
/// back.
class PlaneMoves {
public:
  enum class Direction { Pack, Unpack };

  PlaneMoves(const Placement &placement, Direction direction, uint8_t flip);
  void apply(const Planes &from, Planes &to) const;

private:
  struct Move {
    int source;
    int shift;
    uint64_t mask;
  };
  /// A plane that is made. Its moves follow those of the plane before it: first
  /// those to the right, then those to the left.
  struct Target {
    size_t firstLeft = 0;
    size_t end = 0;
    uint64_t flip = 0;
  };

  std::vector<Move> moves;
  std::vector<Target> targets;
};

/// What takes a unit apart, for a placement's parts, codes of a row and words
/// to an access.
struct UnitAccess {
  /// The codes of a row of the unit to their planes and back; so many parts and
  /// codes, where these are of vectors.
  void (*scatterRow)(const uint8_t *row, Plane *planes, int lane,
                     const UnitAccess &access);
  void (*gatherRow)(const Plane *planes, int lane, uint8_t *row,
                    const UnitAccess &access);
  /// Words as they lie in memory, from their planes and back.
  void (*joinWords)(const Planes &planes, int numWords, uint32_t *words);
  void (*splitWords)(const uint32_t *words, int numWords, Planes &planes);

  explicit UnitAccess(const Placement &placement);

  size_t parts, codes;

private:
  /// The functions for `L` weights to a register.
  template <size_t L> void takeRows(int unitK);
};

/// The plane of the first weight of a row of the unit: the first argument of
/// rows.
int getFirstPlane(const Placement &placement, int row);
/// The lane of the first weight of a row.
inline int getFirstLane(int row) { return row % 8 * 4; }

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_UNITPLANES_H
