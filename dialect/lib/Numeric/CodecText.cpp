//===- CodecText.cpp - Codecs as text -------------------------------------===//
//
//   codec ::= code (group scale ("zeros:" type | "offsets:" type)?
//             ("super:" type ":" group)? "scale2"?)?
//   code  ::= scalar | "lut" bits ":" element (":" scope | "[" entries "]")
//           | "vec" vector ":" books "x" bits "+1"? ":" entries (":" block)?
//           | lattice ("+" lattice)*
//   block ::= extent ("x" extent)*      extent ::= size | "*"
//   group ::= "g" size | "channel" | "tensor"
//
// Words are separated by one space. Entries are the shortest decimals that give
// the same float back.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Numeric/Codec.h"

#include <array>
#include <charconv>

using namespace lowlp;

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static std::string printFloat(float value) {
  std::array<char, 32> text;
  auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string CodecTable::str() const {
  std::string text =
      "lut" + std::to_string(bits) + ":" + std::string(getName(element));
  if (!entries)
    return text + ":" + std::string(getName(scope));
  for (size_t code = 0; code < entries->size(); ++code)
    text += (code ? ", " : "[") + printFloat((*entries)[code]);
  return text + "]";
}

std::string CodecField::str() const {
  return number ? number->name() : table ? table->str() : vectors->str();
}

std::string CodecVectors::str() const {
  std::string text;
  for (Lattice lattice : lattices)
    text += (text.empty() ? "" : "+") + std::string(getName(lattice));
  if (!entries)
    return text;
  text = "vec" + std::to_string(vector) + ":" + std::to_string(books) + "x" +
         std::to_string(bits) + (isSpread ? "+1" : "") + ":" +
         std::string(getName(*entries));
  for (size_t axis = 0; axis < block.size(); ++axis)
    text += (axis ? "x" : ":") +
            (block[axis] ? std::to_string(block[axis]) : std::string("*"));
  return text;
}

std::string CodecSuper::str() const {
  return "super:" + std::string(getName(type)) + ":" + group.str();
}

std::string Codec::str(std::string_view code) const {
  std::string text(code);
  if (!scale)
    return text;
  text += " " + group.str() + " " + std::string(getName(*scale));
  if (zeros)
    text += " zeros:" + std::string(getName(*zeros));
  if (offsets)
    text += " offsets:" + std::string(getName(*offsets));
  if (super)
    text += " " + super->str();
  return scale2 ? text + " scale2" : text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool consume(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix)
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Takes a number off the front.
template <typename T>
static std::optional<T> consumeNumber(std::string_view &text) {
  T value;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    return std::nullopt;
  text.remove_prefix(end - text.data());
  return value;
}

/// Reads the entries in front of `]`.
static std::optional<std::vector<float>> parseEntries(std::string_view text) {
  std::vector<float> entries;
  do {
    while (consume(text, " "))
      ;
    std::optional<float> entry = consumeNumber<float>(text);
    if (!entry)
      return std::nullopt;
    entries.push_back(*entry);
  } while (consume(text, ","));
  if (text != "]")
    return std::nullopt;
  return entries;
}

/// Reads what follows `lut`: 4:f32:tensor.
static Result<CodecField> parseTable(std::string_view text) {
  std::string whole = "lut" + std::string(text);
  auto fail = [&]() -> Result<CodecField> {
    return Error{"expected a table such as lut4:f32:tensor or "
                 "lut1:f16[-1, 1], got '" +
                 whole + "'"};
  };
  std::optional<int64_t> bits = consumeNumber<int64_t>(text);
  if (!bits || !consume(text, ":"))
    return fail();
  std::string_view element = text.substr(0, text.find_first_of(":["));
  text.remove_prefix(element.size());
  Result<CodecTable> table = Error{""};
  if (consume(text, "[")) {
    std::optional<std::vector<float>> entries = parseEntries(text);
    if (!entries)
      return fail();
    table = CodecTable::create(*bits, element, "tensor", std::move(entries));
  } else {
    if (!consume(text, ":"))
      return fail();
    table = CodecTable::create(*bits, element, text);
  }
  if (!table)
    return Error{table.error()};
  return CodecField::of(*std::move(table));
}

/// Reads 256x256 or 1x*x*; an empty text is no block.
static std::optional<std::vector<int64_t>> parseBlock(std::string_view text) {
  std::vector<int64_t> block;
  if (text.empty())
    return block;
  do {
    std::optional<int64_t> extent = 0;
    // 0 is written as `*` only.
    if (!consume(text, "*"))
      extent = consumeNumber<int64_t>(text);
    else if (block.empty())
      return std::nullopt;
    if (!extent)
      return std::nullopt;
    block.push_back(*extent);
  } while (consume(text, "x"));
  return text.empty() ? std::optional(block) : std::nullopt;
}

/// Reads what follows `vec`: 8:2x8:f16:256x256.
static Result<CodecField> parseVectors(std::string_view text) {
  Error bad = {"expected vectors such as vec8:2x8:f16 or "
               "vec4:1x8:f16:256x256, got 'vec" +
               std::string(text) + "'"};
  std::optional<int64_t> vector = consumeNumber<int64_t>(text);
  if (!vector || !consume(text, ":"))
    return bad;
  std::optional<int64_t> books = consumeNumber<int64_t>(text);
  if (!books || !consume(text, "x"))
    return bad;
  std::optional<int64_t> bits = consumeNumber<int64_t>(text);
  bool isSpread = consume(text, "+1");
  if (!bits || !consume(text, ":"))
    return bad;
  std::string_view entries = text.substr(0, text.find(':'));
  text.remove_prefix(entries.size());
  bool hasBlock = consume(text, ":");
  std::optional<std::vector<int64_t>> block = parseBlock(text);
  if (!block || hasBlock == block->empty())
    return bad;
  Result<CodecVectors> vectors = CodecVectors::create(
      *vector, *bits, *books, entries, *std::move(block), isSpread);
  if (!vectors)
    return Error{vectors.error()};
  return CodecField::of(*std::move(vectors));
}

/// Reads e8p+e81b.
static Result<CodecField> parseLattices(std::string_view text) {
  std::vector<std::string> names;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find('+');
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  Result<CodecVectors> vectors = CodecVectors::create(names);
  if (!vectors)
    return Error{vectors.error()};
  return CodecField::of(*std::move(vectors));
}

static Result<CodecField> parseField(std::string_view text) {
  if (text.substr(0, 6) == "planes") {
    CodecField field;
    field.kind = CodecField::Kind::Planes;
    return field;
  }
  if (consume(text, "lut"))
    return parseTable(text);
  if (consume(text, "vec"))
    return parseVectors(text);
  if (text.substr(0, 3) == "e8p" || text.substr(0, 4) == "e81b")
    return parseLattices(text);
  Result<ScalarFormat> number = ScalarFormat::parse(text);
  if (!number)
    return Error{number.error()};
  return CodecField::of(*number);
}

static Result<CodecGroup> parseGroup(std::string_view text) {
  std::string_view rest = text;
  if (consume(rest, "g"))
    if (std::optional<int64_t> size = consumeNumber<int64_t>(rest);
        size && rest.empty())
      return CodecGroup::of(*size);
  return CodecGroup::named(text);
}

/// Takes the next word off the text, up to a space outside of brackets.
static std::string_view consumeWord(std::string_view &text) {
  size_t end = 0;
  for (int depth = 0; end < text.size() && (depth || text[end] != ' '); ++end)
    depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  consume(text, " ");
  return word;
}

static Result<Codec> parseCodec(std::string_view text) {
  std::string_view rest = text;
  Result<CodecField> field = parseField(consumeWord(rest));
  if (!field)
    return Error{field.error()};
  if (rest.empty())
    return Codec::codesAlone(*std::move(field));
  Result<CodecGroup> group = parseGroup(consumeWord(rest));
  if (!group)
    return Error{group.error()};
  Codec::Parts parts;
  parts.scale = std::string(consumeWord(rest));
  std::string_view word = consumeWord(rest);
  if (consume(word, "zeros:")) {
    parts.zeros = std::string(word);
    word = consumeWord(rest);
  }
  if (consume(word, "offsets:")) {
    parts.offsets = std::string(word);
    word = consumeWord(rest);
  }
  if (consume(word, "super:")) {
    size_t end = word.find(':');
    parts.superScale = std::string(word.substr(0, end));
    Result<CodecGroup> super =
        parseGroup(end == std::string_view::npos ? "" : word.substr(end + 1));
    if (!super)
      return Error{"super_" + super.error()};
    parts.superGroup = *super;
    word = consumeWord(rest);
  }
  parts.scale2 = consume(word, "scale2");
  if (!word.empty() || !rest.empty())
    return Error{"expected 'int4 g128 f16', then zeros:TYPE or "
                 "offsets:TYPE, super:TYPE:GROUP and scale2 as there are any, "
                 "got '" +
                 std::string(text) + "'"};
  return Codec::create(*std::move(field), *group, parts);
}

Result<Codec> Codec::parse(std::string_view text) {
  Result<Codec> codec = parseCodec(text);
  return codec ? codec : Error{"codec: " + codec.error()};
}
