//===- Parse.cpp - Reading layouts ----------------------------------------===//
//
// A recursive-descent parser for the grammars in LayoutText.h and
// SharedLayout.h. It keeps the first error; after one, every step returns
// without reading on.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Layout/SharedLayout.h"

#include <optional>

using namespace lowlp;

namespace {
class LayoutParser {
public:
  explicit LayoutParser(std::string_view text) : text(text) {}

  Result<Layout> run() {
    Layout layout = parseProduct(0);
    skipSpace();
    if (!failed() && position != text.size())
      fail("'.' or the end of the layout");
    if (failed())
      return Error{message};
    return layout;
  }

  Result<SharedLayout> runShared();

private:
  // Deep nesting means nothing and would only exhaust the stack.
  static constexpr int maxDepth = 64;

  bool failed() const { return !message.empty(); }
  void fail(const std::string &expected);
  void skipSpace();
  bool consume(char c);
  void expect(char c);
  std::string_view peekWord();
  /// All bytes of the character of UTF-8 that comes next.
  std::string_view peekCharacter() const;
  std::optional<int64_t> parseInt();
  std::vector<int64_t> parseInts(char open, char close);
  bool parseBool();
  void expectKey(std::string_view key);

  Layout parseProduct(int depth);
  Layout parseItem(const Layout &left, bool isFirst, int depth);
  int64_t parseNamedInt(std::string_view key);
  Layout parseLocals();
  Layout parseReduce(const Layout &left, bool isFirst, int depth);
  Layout parseReduceArguments(const Layout &operand);
  Layout take(Result<Layout> result);

  std::string_view text;
  size_t position = 0;
  std::string message;
};
} // namespace

void LayoutParser::fail(const std::string &expected) {
  if (failed())
    return;
  skipSpace();
  std::string found = "the end of the text";
  if (position < text.size()) {
    std::string_view word = peekWord();
    if (word.empty())
      word = peekCharacter();
    found = "'" + std::string(word) + "'";
  }
  message = "expected " + expected + " at position " +
            std::to_string(position) + " of the layout '" + std::string(text) +
            "'; found " + found;
}

void LayoutParser::skipSpace() {
  while (position < text.size() &&
         std::string_view(" \t\r\n").find(text[position]) !=
             std::string_view::npos)
    ++position;
}

bool LayoutParser::consume(char c) {
  skipSpace();
  if (failed() || position == text.size() || text[position] != c)
    return false;
  ++position;
  return true;
}

void LayoutParser::expect(char c) {
  if (!consume(c))
    fail("'" + std::string(1, c) + "'");
}

std::string_view LayoutParser::peekWord() {
  skipSpace();
  auto isWord = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
  };
  size_t end = position;
  while (end < text.size() && isWord(text[end]))
    ++end;
  return text.substr(position, end - position);
}

std::string_view LayoutParser::peekCharacter() const {
  size_t end = position + 1;
  while (end < text.size() && (text[end] & 0xc0) == 0x80)
    ++end;
  return text.substr(position, end - position);
}

std::optional<int64_t> LayoutParser::parseInt() {
  skipSpace();
  size_t begin = position;
  bool negative = consume('-');
  std::string_view digits = peekWord();
  // Eighteen digits always fit in 64 bits and are beyond any extent.
  bool valid = !failed() && !digits.empty() && digits.size() <= 18 &&
               digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!valid) {
    position = begin;
    fail("an integer");
    return std::nullopt;
  }
  position += digits.size();
  int64_t value = 0;
  for (char digit : digits)
    value = value * 10 + (digit - '0');
  return negative ? -value : value;
}

std::vector<int64_t> LayoutParser::parseInts(char open, char close) {
  std::vector<int64_t> numbers;
  expect(open);
  if (failed() || consume(close))
    return numbers;
  while (std::optional<int64_t> number = parseInt()) {
    numbers.push_back(*number);
    if (!consume(','))
      break;
  }
  if (!consume(close))
    fail(std::string("',' or '") + close + "'");
  return numbers;
}

bool LayoutParser::parseBool() {
  std::string_view word = peekWord();
  bool isTrue = word == "True" || word == "true";
  if (!isTrue && word != "False" && word != "false") {
    fail("True or False");
    return false;
  }
  position += word.size();
  return isTrue;
}

void LayoutParser::expectKey(std::string_view key) {
  if (failed())
    return;
  if (peekWord() != key)
    return fail("'" + std::string(key) + "='");
  position += key.size();
  expect('=');
}

/// The layout of a result; an error becomes the parser's.
Layout LayoutParser::take(Result<Layout> result) {
  if (failed())
    return Layout();
  if (!result) {
    message = result.error() + ", in the layout '" + std::string(text) + "'";
    return Layout();
  }
  return *result;
}

Layout LayoutParser::parseProduct(int depth) {
  if (depth == maxDepth) {
    fail("at most " + std::to_string(maxDepth) + " nested reductions");
    return Layout();
  }
  Layout layout = parseItem(Layout(), /*isFirst=*/true, depth);
  while (!failed() && consume('.'))
    layout = parseItem(layout, /*isFirst=*/false, depth);
  return layout;
}

static std::optional<PrimitiveKind> primitiveKind(std::string_view name) {
  if (name == "local" || name == "repeat")
    return PrimitiveKind::Local;
  if (name == "spatial")
    return PrimitiveKind::Spatial;
  if (name == "column_local" || name == "column_repeat")
    return PrimitiveKind::ColumnLocal;
  if (name == "column_spatial")
    return PrimitiveKind::ColumnSpatial;
  return std::nullopt;
}

/// A factor, composed with the layout to its left if there is one, or a change
/// of that layout.
Layout LayoutParser::parseItem(const Layout &left, bool isFirst, int depth) {
  std::string_view name = peekWord();
  if (std::optional<PrimitiveKind> kind = primitiveKind(name)) {
    position += name.size();
    std::vector<int64_t> shape = parseInts('(', ')');
    if (failed())
      return Layout();
    Layout factor = take(Layout::primitive(*kind, shape));
    return isFirst ? factor : take(compose(left, factor));
  }
  if (name == "reduce") {
    position += name.size();
    return parseReduce(left, isFirst, depth);
  }
  bool isChange = name == "reshape" || name == "permute" || name == "squeeze" ||
                  name == "unsqueeze" || name == "broadcast";
  if (isFirst || !isChange) {
    fail(isFirst ? "local, spatial, column_local, column_spatial or reduce"
                 : "local, spatial, column_local, column_spatial, reduce, "
                   "reshape, permute, squeeze, unsqueeze or broadcast");
    return Layout();
  }
  position += name.size();
  std::vector<int64_t> numbers = parseInts('(', ')');
  if (failed())
    return Layout();
  if (name == "reshape")
    return take(reshape(left, numbers));
  if (name == "permute")
    return take(permute(left, numbers));
  if (name == "squeeze")
    return take(squeeze(left, numbers));
  if (name == "unsqueeze")
    return take(unsqueeze(left, numbers));
  if (numbers.size() != 1) {
    fail("one rank in broadcast(...)");
    return Layout();
  }
  return take(broadcast(left, numbers[0]));
}

/// Both forms of reduce: `reduce(layout, dims=[...])` is a factor,
/// `.reduce(dims=[...])` a change.
Layout LayoutParser::parseReduce(const Layout &left, bool isFirst, int depth) {
  expect('(');
  if (failed())
    return Layout();
  if (!isFirst && peekWord() == "dims")
    return parseReduceArguments(left);
  Layout operand = parseProduct(depth + 1);
  expect(',');
  Layout factor = parseReduceArguments(operand);
  return isFirst ? factor : take(compose(left, factor));
}

/// `dims=[...] [, keep_dims=...] )`, applied to `operand`.
Layout LayoutParser::parseReduceArguments(const Layout &operand) {
  expectKey("dims");
  std::vector<int64_t> dims = parseInts('[', ']');
  bool keepDims = false;
  if (consume(',')) {
    expectKey("keep_dims");
    keepDims = parseBool();
  }
  expect(')');
  if (failed())
    return Layout();
  return take(reduce(operand, dims, keepDims));
}

//===----------------------------------------------------------------------===//
// Layouts of shared memory
//===----------------------------------------------------------------------===//

int64_t LayoutParser::parseNamedInt(std::string_view key) {
  expectKey(key);
  return parseInt().value_or(0);
}

/// The local factors after a swizzle. A change would apply to the swizzle too,
/// which has no such form.
Layout LayoutParser::parseLocals() {
  Layout layout;
  for (bool isFirst = true; !failed() && consume('.'); isFirst = false) {
    std::optional<PrimitiveKind> kind = primitiveKind(peekWord());
    if (kind != PrimitiveKind::Local && kind != PrimitiveKind::ColumnLocal) {
      fail("local or column_local after a swizzle");
      return Layout();
    }
    layout = parseItem(layout, isFirst, 0);
  }
  return layout;
}

Result<SharedLayout> LayoutParser::runShared() {
  Layout outer;
  bool isFirst = true, isSwizzled = peekWord() == "swizzle";
  while (!failed() && !isSwizzled) {
    outer = parseItem(outer, isFirst, 0);
    isFirst = false;
    if (!consume('.'))
      break;
    isSwizzled = peekWord() == "swizzle";
  }
  Layout factor, inner;
  int64_t dim = 0, logStep = 0;
  if (!failed() && isSwizzled) {
    position += std::string_view("swizzle").size();
    expect('(');
    factor = parseProduct(1);
    expect(',');
    dim = parseNamedInt("dim");
    if (consume(','))
      logStep = parseNamedInt("log_step");
    expect(')');
    inner = parseLocals();
  }
  skipSpace();
  if (!failed() && position != text.size())
    fail("'.' or the end of the layout");
  if (failed())
    return Error{message};
  return isSwizzled ? SharedLayout::swizzled(outer, factor, dim, logStep, inner)
                    : SharedLayout::plain(outer);
}

Result<Layout> lowlp::parseLayout(std::string_view text) {
  return LayoutParser(text).run();
}

Result<SharedLayout> lowlp::parseSharedLayout(std::string_view text) {
  return LayoutParser(text).runShared();
}
