//===- Placement.h - Where each bit of packed weights is --------*- C++ -*-===//
//
// Packed weights are cut into units of 16 R rows by U weights of a row, and a
// warp takes a unit as A operands of its matrix instructions: R tiles of 16
// rows, each of S steps along K. In step s of tile t lane l holds four
// registers of L weights, as the fragment family says (wgmma's A in registers
// is the same for each of its four warps):
//
//   slot  (t * S + s) * 4 + r + 2 h           r, h in {0, 1}
//   row   16 t + 8 r + l / 4
//   k     8 L * s + 4 L * h + L * (l % 4) + part,   part in 0 .. L - 1
//
// with L = 2 weights of 16 bits or 4 of 8 bits to a register, and S = U / (8
// L). A lane's R U / 2 weights of b bits are b R U / 64 words of 32 bits. A
// placement says where in these words each bit of each weight is, the same for
// every lane: a map (slot, part, bit) -> (word, bit of the word), one to one
// and onto.
//
// U is 64, or 32 or 16 with two or four times as many rows: the same slots at
// the same places, so that a row of 96 weights need not take 128. Which shape a
// matrix has is said by its N and K (`forMatrix`, ADR 0038).
//
// Memory holds, with v = gcd(words, 4) words to an access of a lane,
//
//   uint32 [ceil(N / 16 R)] [ceil(K / U)] [words / v] [32 lanes] [v]
//
// Codes of up to 8 bits have a placement for each family that was searched for
// and frozen. Those of 9 to 16 bits, indices of tables, are `contiguous`, and
// no plan decodes them: `lowlp.unpack` does.
//
// Of b1, products of single bits, a lane's words are the registers of the
// instruction as they are, bit i of all codes in four words of its own
// (`ofBits`):
//
//   word  4 * i + slot        bit  8 * (part % 4) + part / 4
//
// so that four codes in the bytes of a word become planes by shifts of whole
// words. U is 256, and a unit has 16 rows.
//
// Where a code stands for v weights of a row, a step is four codes along K, and
// lane l holds those at code l % 4 of a step, of two rows:
//
//   slot  (t * S + s) * 2 + r                  r in {0, 1}
//   row   16 t + 8 r + l / 4
//   code  4 s + l % 4, weights v (4 s + l % 4) and on
//   part  which of the codes of these weights, where several books add up
//
// The vectors are then, in this order, the registers of A in 4 v / 16 steps of
// 16 whose weights are taken in another order along K (docs/packed-format.md).
// Codes are `contiguous`, and U is 4 v S, at least 16; a lane's words are as
// many as accesses of 16 bytes need, if 64 weights of a row and not too many do
// (`ofVectors`).
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
  static constexpr int formatVersion = 5;

  /// The placement with `places[(slot * parts + part) * bits + bit]`, of units
  /// 64 wide; fails unless every bit of the words is taken exactly once.
  static Result<Placement> create(CodeFormat format, ComputeType compute,
                                  int rowTiles, std::vector<BitPlace> places);

  /// Weights one after the other in the order of slots and parts, without gaps,
  /// low bits first, of units 64 wide. With `slices`, widths that add up to the
  /// format's bits, the low `slices[0]` bits of all weights come first, in
  /// words of their own, then the next ones (FLUTE, section 3.1).
  static Placement contiguous(CodeFormat format, ComputeType compute,
                              int rowTiles, std::vector<int> slices = {});

  /// Codes of vectors one after the other, without gaps, in the widest units of
  /// a family of weights of 16 bits.
  static Placement ofVectors(CodeFormat format, ComputeType compute);

  /// The planes of stored codes of up to 8 bits, for the family b1.
  static Placement ofBits(CodeFormat format);
  /// The bit of a word of a plane that code `part` of 32 has; also in the words
  /// of activations' planes.
  static constexpr int getBitOfPart(int part) {
    return 8 * (part % 4) + part / 4;
  }

  /// The placement of the packed format for a format and a family. Fails where
  /// there is none, naming both.
  static Result<const Placement *> find(CodeFormat format,
                                        FragmentFamily family);
  static Result<const Placement *> find(CodeFormat format,
                                        ComputeType compute) {
    return find(format, FragmentFamily{compute});
  }
  /// The same by name, int6.f16 or int6.f16.k32 for example.
  static Result<const Placement *> find(std::string_view name);
  /// All frozen placements of the packed format, of codes of up to 8 bits and
  /// units 64 wide.
  static const std::vector<Placement> &all();
  /// Those of 9 to 16 bits.
  static const std::vector<Placement> &general();
  /// Those of planes, of integers of 1 to 8 bits.
  static const std::vector<Placement> &planes();

  /// The same slots at the same places, in units that are `unitK` wide, one of
  /// `getUnitKs`.
  Placement withUnitK(int unitK) const;
  /// The weights of a row in units of each shape, the widest first: 64, 32 and
  /// 16 where a step is no wider, else that of a step; of vectors other powers
  /// of two.
  std::vector<int> getUnitKs() const;
  /// How a matrix of codes [n, k], n and k at least 1, is packed: of the shapes
  /// of units that this placement can have the one that takes the fewest words,
  /// of equal ones the widest. Requires a placement of the packed format.
  const Placement &forMatrix(int64_t n, int64_t k) const;

  const CodeFormat &getFormat() const { return format; }
  const FragmentFamily &getFamily() const { return family; }
  ComputeType getCompute() const { return family.compute; }
  /// The format's name and the family's: int6.f16.
  std::string name() const;

  int getNumRowTiles() const { return rowTiles; }
  int getUnitRows() const { return FragmentFamily::rows * rowTiles; }
  int getUnitK() const { return family.getUnitK(); }
  bool isOfVectors() const { return format.kind == CodeFormat::Kind::Vectors; }
  /// Codes of a slot: the weights that share a register, or the codes of a
  /// vector.
  int getNumParts() const {
    return isOfVectors() ? format.codes : family.getParts();
  }
  int getNumSteps() const {
    return isOfVectors()
               ? getUnitK() / (FragmentFamily::rowLanes * format.vector)
               : family.getNumSteps();
  }
  int getSlotsPerStep() const { return isOfVectors() ? 2 : 4; }
  /// Of a tile of 16 rows.
  int getSlotsPerTile() const { return getNumSteps() * getSlotsPerStep(); }
  int getNumSlots() const { return rowTiles * getSlotsPerTile(); }
  /// Codes for `k` weights of a row, all codes of a vector beside each other.
  int64_t getNumCodes(int64_t k) const {
    return (k + format.vector - 1) / format.vector * format.codes;
  }
  /// The same for a unit: at most `maxUnitCodes`.
  int getUnitCodes() const { return static_cast<int>(getNumCodes(getUnitK())); }
  static constexpr int maxUnitCodes = 256;
  /// Words of a lane, for one unit.
  int getNumWords() const {
    return format.bits * getNumSlots() * getNumParts() / 32;
  }
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
    return slot / getSlotsPerTile() * 2 + slot % 2;
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
  Placement(CodeFormat format, FragmentFamily family, int rowTiles,
            std::vector<BitPlace> places)
      : format(format), family(family), rowTiles(rowTiles),
        places(std::move(places)) {}

  CodeFormat format;
  FragmentFamily family;
  int rowTiles;
  std::vector<BitPlace> places;
};

/// Reads placements as `printPlacements` writes them, of units 64 wide; fails
/// with the line.
Result<std::vector<Placement>> parsePlacements(std::string_view text);
std::string printPlacements(const std::vector<Placement> &placements);

} // namespace lowlp

#endif // LOWLP_DECODE_PLACEMENT_H
