//===- Codec.h - What the codes of a tensor mean ----------------*- C++ -*-===//
//
// A codec says what a code of 1 to 16 bits stands for, as data:
//
//   value = (s * (q - z)) * s2   or   (s * q) + b
//
// where q is a number of a scalar format, or an entry T[code] of a table; s, z
// and b are shared by a group of weights of a row, and s2 by all weights. Or
// scales are in two levels, integers times floats of a super-group:
//
//   value = (S * s) * (q - z)   or   ((S * s) * q) + (B * b)
//
// Its text names every field and is read back:
//
//   int6 g128 f16                       one scale for 128 weights of a row
//   uint4 channel bf16 zeros:uint8      one for a row, with zero points
//   f4e2m1 g16 e4m3 scale2              a second scale, of all weights
//   int6 g16 int8 super:f16:g256        integer scales, times floats for 256
//   uint4 g32 uint8 offsets:uint8 super:f16:g256   offsets as well
//   lut2:f32[-1, 0, 0.5, 1] tensor f16  a table, by its entries
//   lut4:f16:group g64 f32              a table for each group
//   int6                                codes alone, without scales
//
// A code may also stand for several weights side by side along K, a vector that
// is an entry of a book, or the sum of entries of several books:
//
//   value = s * (C_0[q_0] + C_1[q_1] + ...)
//
//   vec8:2x8:f16 channel f16            8 weights, 2 books, codes of 8 bits
//   vec4:1x8:int8:256x256 g128 f16      books for each 256 rows by 256 of K
//   vec8:2x12+1:f16 channel f16         packed codes have a bit more: they are
//                                       spread over banks
//   e8p+e8p channel f16                 books that are computed (Lattice.h)
//
// A new codec is one of these with other fields; no code is needed for it.
// Fields of planes (sums of separate bits) have their place, and are refused as
// reserved.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_NUMERIC_CODEC_H
#define LOWLP_NUMERIC_CODEC_H

#include "lowlp/Numeric/Lattice.h"
#include "lowlp/Numeric/ScalarFormat.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowlp {

/// The types of scales, zero points, offsets and entries of tables.
enum class PartType {
  F16,
  BF16,
  F32,
  E8M0,
  E4M3,
  Int8,
  UInt8,
  Int16,
  UInt4,
  Int6
};

/// f16, e8m0, int8 and so on.
std::string_view getName(PartType type);

/// The types that each part may have, in the order in which messages list them.
const std::vector<PartType> &getScaleTypes();
const std::vector<PartType> &getZeroTypes();
const std::vector<PartType> &getOffsetTypes();
const std::vector<PartType> &getTableTypes();
/// Of scales and offsets that are multiplied by those of a super-group, and of
/// these.
const std::vector<PartType> &getScaleCodeTypes();
const std::vector<PartType> &getSuperTypes();

/// What has a table of its own.
enum class TableScope { Tensor, Channel, Group };
std::string_view getName(TableScope scope);
const std::vector<TableScope> &getTableScopes();

/// The table of a codec; made by `create`, so that an invalid one cannot be.
struct CodecTable {
  /// Of a code, 1 to 16.
  int bits;
  PartType element;
  TableScope scope;
  /// Of the one table of a tensor, 2^bits finite values by code; none where
  /// they come with the weights.
  std::optional<std::vector<float>> entries;

  static Result<CodecTable>
  create(int64_t bits, std::string_view element, std::string_view scope,
         std::optional<std::vector<float>> entries = std::nullopt);
  /// `lut4:f32:tensor`, `lut3:f16:group`; with entries `lut1:f16[-1, 1]`.
  std::string str() const;
  bool operator==(const CodecTable &other) const;
};

/// The types of the entries of books of vectors.
enum class EntryType { F16, BF16, Int8, F8E4M3 };
std::string_view getName(EntryType type);
const std::vector<EntryType> &getEntryTypes();

/// How the codes of packed weights have one bit more than an entry needs, by
/// which lanes that read shared memory together read different banks
/// (docs/packed-format.md, "Codes that are spread").
enum class CodeSpread {
  None,
  /// Each book has its entries twice, and a code names one of the two.
  Copies,
  /// Two books are one, of which codes name two entries in any order.
  Exchange
};
std::string_view getName(CodeSpread spread);

/// Codes of vectors; made by its factories, so that an invalid one cannot be.
struct CodecVectors {
  static constexpr int maxBooks = 4;

  /// Weights of a row that a code of each book stands for: 2, 4, 8 or 16.
  int vector;
  /// Of the code of a book; of computed books those of the widest.
  int bits;
  /// Books whose entries add up, in their order.
  int books;
  /// Of the books; none where these are computed.
  std::optional<EntryType> entries;
  /// What computes the vectors of each book; none where they are entries.
  std::vector<Lattice> lattices;
  /// Which weights share books: extents along the last axes of a tensor, 0 for
  /// all of an axis, as all of the axes in front are. Of weights [N, K] rows
  /// and K; of keys and values tokens, heads and channels. Empty: all weights.
  /// The first is not 0.
  std::vector<int64_t> block;
  /// Whether packed codes are spread.
  bool isSpread = false;

  /// Books of 2^bits entries. Fails for codes that are to be spread and cannot
  /// be.
  static Result<CodecVectors> create(int64_t vector, int64_t bits,
                                     int64_t books, std::string_view entries,
                                     std::vector<int64_t> block = {},
                                     bool isSpread = false);
  /// Computed books, by name: `e8p`, or it and `e8p` or `e81b`.
  static Result<CodecVectors> create(const std::vector<std::string> &lattices);

  /// Of the code of a book.
  int getBits(int book) const {
    return lattices.empty() ? bits : getCodeBits(lattices[book]);
  }
  /// Whether each book has a scale in f32: its entries are integers, or numbers
  /// of a small range.
  bool hasBookScales() const {
    return entries != EntryType::F16 && entries != EntryType::BF16;
  }
  /// How codes of such books are spread: where shared memory has no room for as
  /// many copies of entries as avoid conflicts of banks, but for two, or for
  /// both of two books without scales.
  CodeSpread findSpread() const;
  /// How packed codes are.
  CodeSpread getSpread() const {
    return isSpread ? findSpread() : CodeSpread::None;
  }
  /// Of a packed code of a book.
  int getStoredBits() const {
    return bits + (getSpread() == CodeSpread::None ? 0 : 1);
  }
  /// `vec8:2x8:f16`, `vec4:1x8:f16:256x*`, `vec8:2x12+1:f16`, `e8p+e8p`.
  std::string str() const;
  bool operator==(const CodecVectors &other) const;
};

/// What the bits of a code are.
struct CodecField {
  enum class Kind {
    /// A number of a scalar format: an integer, a float, bipolar bits.
    Number,
    /// An index of a table.
    Table,
    /// An index of a book of vectors, or one of each of several.
    Vectors,
    /// Planes of bits that are multiplied apart. Reserved.
    Planes
  };
  static constexpr int maxBits = 16;

  Kind kind = Kind::Number;
  /// Of the kind Number.
  std::optional<ScalarFormat> number;
  /// Of the kind Table.
  std::optional<CodecTable> table;
  /// Of the kind Vectors.
  std::optional<CodecVectors> vectors;

  static CodecField of(const ScalarFormat &number) {
    return {Kind::Number, number, std::nullopt, std::nullopt};
  }
  static CodecField of(CodecTable table) {
    return {Kind::Table, std::nullopt, std::move(table), std::nullopt};
  }
  static CodecField of(CodecVectors vectors) {
    return {Kind::Vectors, std::nullopt, std::nullopt, std::move(vectors)};
  }
  /// Of the widest code. Requires: another kind than Planes.
  int getBits() const {
    return number ? number->bits : table ? table->bits : vectors->bits;
  }
  /// Weights that a code stands for, side by side along K.
  int getValuesPerCode() const { return vectors ? vectors->vector : 1; }
  std::string str() const;
  bool operator==(const CodecField &other) const {
    return kind == other.kind && number == other.number &&
           table == other.table && vectors == other.vectors;
  }
};

/// Which weights share a scale.
struct CodecGroup {
  enum class Kind { Size, Channel, Tensor };
  Kind kind = Kind::Channel;
  /// Weights of a row; of the kind Size.
  int64_t size = 0;

  static CodecGroup of(int64_t size) { return {Kind::Size, size}; }
  /// `channel` or `tensor`; fails for another name.
  static Result<CodecGroup> named(std::string_view name);
  /// `g128`, `channel`, `tensor`.
  std::string str() const;
  bool operator==(const CodecGroup &other) const {
    return kind == other.kind && size == other.size;
  }
};

/// The second level of scales in two levels, and of offsets whose type is an
/// integer: floats of the same type for the same weights.
struct CodecSuper {
  PartType type;
  /// A multiple of the codec's group, of which a row may end with a part; or a
  /// row.
  CodecGroup group;

  /// `super:f16:g256`.
  std::string str() const;
  bool operator==(const CodecSuper &other) const {
    return type == other.type && group == other.group;
  }
};

/// A codec; immutable, and made by its factories, so that an invalid one cannot
/// be.
class Codec {
public:
  /// The types of the parts, by name; without zero points or offsets none.
  struct Parts {
    std::string scale = "f16";
    std::optional<std::string> zeros;
    std::optional<std::string> offsets;
    /// Whether there is a second scale, of all weights.
    bool scale2 = false;
    /// The type of super-scales, and which weights share one.
    std::optional<std::string> superScale;
    CodecGroup superGroup;
  };

  /// Fails for fields that do not go together, with what is allowed.
  static Result<Codec> create(CodecField field, CodecGroup group,
                              const Parts &parts);
  /// Codes alone: no scales, and one group a row.
  static Result<Codec> codesAlone(CodecField field);
  /// Reads what `str` writes.
  static Result<Codec> parse(std::string_view text);

  const CodecField &getField() const { return field; }
  const CodecGroup &getGroup() const { return group; }
  int getBits() const { return field.getBits(); }
  std::optional<PartType> getScale() const { return scale; }
  std::optional<PartType> getZeros() const { return zeros; }
  std::optional<PartType> getOffsets() const { return offsets; }
  const std::optional<CodecSuper> &getSuper() const { return super; }
  /// 0 without scales, 2 with a second one or with super-scales, else 1.
  int getScaleLevels() const { return scale ? 1 + (scale2 || super) : 0; }

  /// The text of all fields.
  std::string str() const { return str(field.str()); }
  /// The same, with the code written as `code`.
  std::string str(std::string_view code) const;

  /// The form in which one kernel serves all codecs that differ by its
  /// arguments: tables without entries, of f32, rows of `k` weights with one
  /// scale, or one super-scale, as a channel, and books of `k` weights of a row
  /// or more as those of all.
  Codec forKernel(int64_t k) const;

  /// A hash that agrees with ==, the same in every process.
  size_t hash() const;
  bool operator==(const Codec &other) const {
    return field == other.field && group == other.group &&
           scale == other.scale && zeros == other.zeros &&
           offsets == other.offsets && scale2 == other.scale2 &&
           super == other.super;
  }
  bool operator!=(const Codec &other) const { return !(*this == other); }

private:
  Codec(CodecField field, CodecGroup group)
      : field(std::move(field)), group(group) {}

  CodecField field;
  CodecGroup group;
  std::optional<PartType> scale, zeros, offsets;
  bool scale2 = false;
  std::optional<CodecSuper> super;

  /// Fails for parts that codes of vectors do not have.
  static Result<bool> checkVectors(const CodecVectors &vectors,
                                   const CodecGroup &group, const Parts &parts);
  /// Fails for super-scales that do not go with the other fields.
  static Result<CodecSuper> createSuper(const CodecGroup &group,
                                        const Parts &parts);
};

} // namespace lowlp

template <> struct std::hash<lowlp::Codec> {
  size_t operator()(const lowlp::Codec &codec) const { return codec.hash(); }
};

#endif // LOWLP_NUMERIC_CODEC_H
