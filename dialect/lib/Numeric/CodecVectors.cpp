//===- CodecVectors.cpp - Codes that stand for several weights ------------===//
#include "CodecNames.h"

#include <algorithm>
#include <array>
#include <utility>

using namespace lowlp;

std::string_view lowlp::getName(EntryType type) {
  static constexpr std::array<std::string_view, 4> names = {"f16", "bf16",
                                                            "int8", "f8e4m3"};
  return names[static_cast<size_t>(type)];
}

const std::vector<EntryType> &lowlp::getEntryTypes() {
  static const std::vector<EntryType> types = {
      EntryType::F16, EntryType::BF16, EntryType::Int8, EntryType::F8E4M3};
  return types;
}

/// Fails unless `value` is within the range.
static Result<bool> checkRange(const char *part, int64_t value, int64_t most) {
  if (value < 1 || value > most)
    return Error{std::string(part) + ": must be in 1.." + std::to_string(most) +
                 ", got " + std::to_string(value)};
  return true;
}

/// Checks a block and leaves out the axes in front that are taken whole.
static Result<bool> checkBlock(std::vector<int64_t> &block, int64_t vector) {
  // Of experts, rows and K, or of tokens, heads and channels.
  constexpr size_t mostAxes = 3;
  if (block.size() > mostAxes)
    return Error{"book_per: expected at most 3 extents, got " +
                 std::to_string(block.size())};
  for (int64_t extent : block)
    if (extent < 0)
      return Error{"book_per: extents must be at least 1, or 0 for all of an "
                   "axis, got " +
                   std::to_string(extent)};
  if (!block.empty() && block.back() % vector)
    return Error{"book_per: the last extent must be a multiple of vector = " +
                 std::to_string(vector) + ", got " +
                 std::to_string(block.back())};
  while (!block.empty() && block.front() == 0)
    block.erase(block.begin());
  return true;
}

Result<CodecVectors> CodecVectors::create(int64_t vector, int64_t bits,
                                          int64_t books,
                                          std::string_view entries,
                                          std::vector<int64_t> block,
                                          bool isSpread) {
  if (vector != 2 && vector != 4 && vector != 8 && vector != 16)
    return Error{"vector: must be one of 2, 4, 8, 16, got " +
                 std::to_string(vector)};
  if (Result<bool> good = checkRange("bits", bits, CodecField::maxBits); !good)
    return Error{good.error()};
  if (Result<bool> good = checkRange("books", books, maxBooks); !good)
    return Error{good.error()};
  Result<EntryType> type = findName("entries", entries, getEntryTypes());
  if (!type)
    return Error{type.error()};
  if (Result<bool> good = checkBlock(block, vector); !good)
    return Error{good.error()};
  CodecVectors made{static_cast<int>(vector),
                    static_cast<int>(bits),
                    static_cast<int>(books),
                    *type,
                    {},
                    std::move(block)};
  made.isSpread = isSpread;
  if (isSpread && made.findSpread() == CodeSpread::None) {
    made.isSpread = false;
    return Error{"spread: codes of " + made.str() + " cannot be spread"};
  }
  return made;
}

Result<CodecVectors>
CodecVectors::create(const std::vector<std::string> &lattices) {
  CodecVectors made{kLatticeVector, 0,  static_cast<int>(lattices.size()),
                    std::nullopt,   {}, {}};
  for (const std::string &name : lattices) {
    Result<Lattice> lattice = findName("lattice", name, getLattices());
    if (!lattice)
      return Error{lattice.error()};
    made.lattices.push_back(*lattice);
    made.bits = std::max(made.bits, getCodeBits(*lattice));
  }
  // QuIP#'s 2, 3 and 4 bits.
  if (lattices.empty() || lattices.size() > 2 ||
      made.lattices.front() != Lattice::E8P)
    return Error{"lattice: must be e8p, e8p+e81b or e8p+e8p, got " +
                 (lattices.empty() ? "none" : made.str())};
  return made;
}

std::string_view lowlp::getName(CodeSpread spread) {
  static constexpr std::array<std::string_view, 3> names = {"", "copies",
                                                            "exchange"};
  return names[static_cast<size_t>(spread)];
}

CodeSpread CodecVectors::findSpread() const {
  // Codes of 8 bits are bytes of addresses, and their entries have room for
  // copies.
  constexpr int leastBits = 9;
  // Of shared memory, for the entries of a block of 227 KiB, and for copies of
  // them that leave most of it to others.
  constexpr int64_t most = int64_t{1} << 17, few = int64_t{1} << 16;
  // What the lanes that are served at a time read.
  constexpr int64_t phase = 128, leastEntry = 4, mostOfLane = 16;
  if (!lattices.empty() || bits < leastBits || bits >= CodecField::maxBits)
    return CodeSpread::None;
  int64_t entry = int64_t{vector} * (hasBookScales() ? 1 : 2);
  int64_t lanes = phase / std::clamp(entry, leastEntry, mostOfLane);
  int64_t bytes = (books * entry) << bits;
  if (entry < leastEntry || bytes * lanes <= few)
    return CodeSpread::None;
  if (2 * bytes <= most)
    return CodeSpread::Copies;
  if (books == 2 && !hasBookScales() && bytes <= most)
    return CodeSpread::Exchange;
  return CodeSpread::None;
}

bool CodecVectors::operator==(const CodecVectors &other) const {
  return vector == other.vector && bits == other.bits && books == other.books &&
         entries == other.entries && lattices == other.lattices &&
         block == other.block && isSpread == other.isSpread;
}

Result<bool> Codec::checkVectors(const CodecVectors &vectors,
                                 const CodecGroup &group, const Parts &parts) {
  for (auto [name, isGiven] :
       {std::pair("zeros", parts.zeros.has_value()),
        std::pair("offsets", parts.offsets.has_value()),
        std::pair("scale2", parts.scale2),
        std::pair("super_scales", parts.superScale.has_value())})
    if (isGiven)
      return Error{std::string(name) + ": not allowed for codes of vectors, " +
                   "got some with " + vectors.str()};
  if (group.kind == CodecGroup::Kind::Size && group.size % vectors.vector)
    return Error{"group: must be a multiple of the " +
                 std::to_string(vectors.vector) + " weights of a code, got " +
                 std::to_string(group.size)};
  return true;
}
