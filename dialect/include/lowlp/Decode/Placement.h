//===- Placement.h - Where each bit of packed weights is --------*- C++ -*-===//
//
// Packed weights are cut into units of 16 R rows by 64 weights of a row, and a
// warp takes a unit as A operands of its matrix instructions: R tiles of 16
// rows, each of S steps along K. In step s of tile t lane l holds four
// registers of L weights, as the fragment family says (wgmma's A in registers
// is the same for each of its four warps):
//
//   slot  (t * S + s) * 4 + r + 2 h           r, h in {0, 1}
//   row   16 t + 8 r + l / 4
//   k     8 L * s + 4 L * h + L * (l % 4) + part,   part in 0 .. L - 1
//
// with L = 2 weights of 16 bits or 4 of 8 bits to a register, and S = 64 / (8
// L). A lane's 32 R weights of b bits are b R words of 32 bits. A placement
// says where in these words each bit of each weight is, the same for every
// lane: a map (slot, part, bit) -> (word, bit of the word), one to one and
// onto.
//
// Memory holds, with v = gcd(words, 4) words to an access of a lane,
//
//   uint32 [ceil(N / 16 R)] [ceil(K / 64)] [words / v] [32 lanes] [v]
//
// Codes of up to 8 bits have a placement for each family that was searched for
// and frozen. Those of 9 to 16 bits, indices of tables, are `contiguous`, and
// no plan decodes them: `lowlp.unpack` does.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_DECODE_PLACEMENT_H
#define LOWLP_DECODE_PLACEMENT_H

#include "lowlp/Decode/CodeFormat.h"

#include <vector>

namespace lowlp {

/// A bit of a lane's words.
struct BitPlace {
  int word;
  int bit;
  bool operator==(const BitPlace &other) const {
    return word == other.word && bit == other.bit;
  }
};

class Placement {
public:
  /// The version of the packed format that the frozen placements make up.
  static constexpr int formatVersion = 3;

  /// The placement with `places[(slot * parts + part) * bits + bit]`; fails
  /// unless every bit of the words is taken exactly once.
  static Result<Placement> create(CodeFormat format, ComputeType compute,
                                  int rowTiles, std::vector<BitPlace> places);

  /// Weights one after the other in the order of slots and parts, without gaps,
  /// low bits first. With `slices`, widths that add up to the format's bits,
  /// the low `slices[0]` bits of all weights come first, in words of their own,
  /// then the next ones (FLUTE, section 3.1).
  static Placement contiguous(CodeFormat format, ComputeType compute,
                              int rowTiles, std::vector<int> slices = {});

  /// The placement of the packed format for a format and a compute type. Fails
  /// where there is none, naming both.
  static Result<const Placement *> find(CodeFormat format, ComputeType compute);
  /// The same by name, int6.f16 for example.
  static Result<const Placement *> find(std::string_view name);
  /// All frozen placements of the packed format, of codes of up to 8 bits.
  static const std::vector<Placement> &all();
  /// Those of 9 to 16 bits.
  static const std::vector<Placement> &general();

  const CodeFormat &getFormat() const { return format; }
  const FragmentFamily &getFamily() const { return family; }
  ComputeType getCompute() const { return family.compute; }
  /// The format's name and the compute type's: int6.f16.
  std::string name() const;

  int getNumRowTiles() const { return rowTiles; }
  int getUnitRows() const { return FragmentFamily::rows * rowTiles; }
  int getUnitK() const { return family.getUnitK(); }
  int getNumParts() const { return family.getParts(); }
  int getNumSteps() const { return family.getNumSteps(); }
  int getNumSlots() const { return rowTiles * getNumSteps() * 4; }
  /// Words of a lane, for one unit.
  int getNumWords() const { return format.bits * rowTiles; }
  /// The widths of the slices with which this is `contiguous`; none where it is
  /// not.
  std::vector<int> findSlices() const;
  /// Words that lie side by side for a lane: 1, 2 or 4.
  int getWordsPerAccess() const;

  BitPlace getPlace(int slot, int part, int bit) const {
    return places[(slot * getNumParts() + part) * format.bits + bit];
  }
  /// The tile of 16 rows of a slot, and the half of it: 2 t + r.
  int getRowOfSlot(int slot) const {
    return slot / (4 * getNumSteps()) * 2 + slot % 2;
  }

  /// The stored code of a weight in a lane's words.
  uint16_t extract(const uint32_t *words, int slot, int part) const;
  /// Sets a code where all bits are zero so far.
  void insert(uint32_t *words, int slot, int part, uint16_t stored) const;

  bool operator==(const Placement &other) const {
    return format == other.format && family == other.family &&
           rowTiles == other.rowTiles && places == other.places;
  }

private:
  Placement(CodeFormat format, ComputeType compute, int rowTiles,
            std::vector<BitPlace> places)
      : format(format), family{compute}, rowTiles(rowTiles),
        places(std::move(places)) {}

  CodeFormat format;
  FragmentFamily family;
  int rowTiles;
  std::vector<BitPlace> places;
};

/// Reads placements as `printPlacements` writes them; fails with the line.
Result<std::vector<Placement>> parsePlacements(std::string_view text);
std::string printPlacements(const std::vector<Placement> &placements);

} // namespace lowlp

#endif // LOWLP_DECODE_PLACEMENT_H
