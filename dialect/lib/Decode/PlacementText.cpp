//===- PlacementText.cpp - Placements as text, and the frozen ones --------===//
//
//   placement int6.f16 tiles 1 steps 2
//   0: 0.0-5
//   1: 2.10-13 0.6 0.7
//
// A line for each slot says where its weights' bits are, from bit 0 on: `0.2-5`
// are bits 2 to 5 of word 0, `0.5-2` the same downwards. Of the weights of a
// register only the first is written where the others lie alike, 16 (or 8, 16
// and 24) bits further on, modulo 32; else `|` is between them. `steps 2`:
// further steps along K lie as the first 2, in words of their own.
//
//===----------------------------------------------------------------------===//
#include "Period.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

using namespace lowlp;

namespace {
/// Slots of a placement, by tile, step and place in the step.
struct SlotOrder {
  CodeFormat format;
  int rowTiles, numSteps, numParts;

  int getSlot(int tile, int step, int place) const {
    return (tile * numSteps + step) * 4 + place;
  }
  size_t getFlat(int slot, int part, int bit) const {
    return (static_cast<size_t>(slot) * numParts + part) * format.bits + bit;
  }
};
} // namespace

/// Where part `part` lies if all parts of a register lie alike.
static BitPlace getAlike(BitPlace first, int part, int numParts) {
  return {first.word, (first.bit + part * (32 / numParts)) % 32};
}

/// The places of one weight as runs.
static void printWeight(std::ostringstream &out, const Placement &placement,
                        int slot, int part) {
  int bits = placement.getFormat().bits;
  for (int start = 0; start < bits;) {
    BitPlace first = placement.getPlace(slot, part, start);
    int stop = start + 1, direction = 0;
    for (; stop < bits; ++stop) {
      BitPlace next = placement.getPlace(slot, part, stop);
      BitPlace last = placement.getPlace(slot, part, stop - 1);
      int change = next.bit - last.bit;
      if (next.word != first.word || std::abs(change) != 1 ||
          (direction && change != direction))
        break;
      direction = change;
    }
    out << " " << first.word << "." << first.bit;
    if (stop > start + 1)
      out << "-" << first.bit + direction * (stop - start - 1);
    start = stop;
  }
}

std::string lowlp::printPlacements(const std::vector<Placement> &placements) {
  std::ostringstream out;
  for (const Placement &placement : placements) {
    int period = getPeriod(placement);
    SlotOrder order = {placement.getFormat(), placement.getNumRowTiles(),
                       placement.getNumSteps(), placement.getNumParts()};
    out << "placement " << placement.name() << " tiles " << order.rowTiles
        << " steps " << period << "\n";
    for (int tile = 0; tile < order.rowTiles; ++tile)
      for (int step = 0; step < period; ++step)
        for (int place = 0; place < 4; ++place) {
          int slot = order.getSlot(tile, step, place);
          out << slot << ":";
          printWeight(out, placement, slot, 0);
          bool alike = arePartsAlike(placement, slot);
          for (int part = 1; !alike && part < order.numParts; ++part) {
            out << " |";
            printWeight(out, placement, slot, part);
          }
          out << "\n";
        }
  }
  return out.str();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads the runs of one weight, up to a `|` or the end of the line.
static bool parseWeight(std::istringstream &line, int bits,
                        std::vector<BitPlace> &places, bool &more) {
  std::string token;
  more = false;
  places.clear();
  while (line >> token) {
    if (token == "|") {
      more = true;
      break;
    }
    int word = 0, from = 0, to = 0;
    char dot = 0, dash = 0;
    std::istringstream run(token);
    if (!(run >> word >> dot >> from) || dot != '.')
      return false;
    to = from;
    if (!run.eof() && (!(run >> dash >> to) || dash != '-' || !run.eof()))
      return false;
    for (int bit = from;; bit += to < from ? -1 : 1) {
      places.push_back({word, bit});
      if (bit == to)
        break;
      if (static_cast<int>(places.size()) > bits)
        return false;
    }
  }
  return static_cast<int>(places.size()) == bits;
}

namespace {
/// A placement that is being read.
struct Draft {
  CodeFormat format;
  ComputeType compute;
  int rowTiles;
  int period;
  SlotOrder order;
  std::vector<BitPlace> places;

  Draft(CodeFormat format, ComputeType compute, int rowTiles, int period)
      : format(format), compute(compute), rowTiles(rowTiles), period(period),
        order{format, rowTiles, FragmentFamily{compute}.getNumSteps(),
              FragmentFamily{compute}.getParts()},
        places(static_cast<size_t>(32 * rowTiles * format.bits),
               BitPlace{-1, 0}) {}

  bool isSlot(int slot) const {
    return slot >= 0 && slot < rowTiles * order.numSteps * 4 &&
           slot / 4 % order.numSteps < period;
  }

  /// Sets one weight, and its copies in further steps.
  void set(int slot, int part, const std::vector<BitPlace> &weight) {
    int words = format.bits * rowTiles * period / order.numSteps;
    for (int copy = 0; copy * period < order.numSteps; ++copy)
      for (int bit = 0; bit < format.bits; ++bit)
        places[order.getFlat(slot + 4 * copy * period, part, bit)] = {
            weight[bit].word + copy * words, weight[bit].bit};
  }
};
} // namespace

static bool parseSlotLine(const std::string &content, Draft &draft) {
  std::istringstream line(content);
  int slot = 0;
  char colon = 0;
  if (!(line >> slot >> colon) || colon != ':' || !draft.isSlot(slot))
    return false;
  std::vector<BitPlace> weight;
  bool more = false;
  int numParts = draft.order.numParts;
  if (!parseWeight(line, draft.format.bits, weight, more))
    return false;
  draft.set(slot, 0, weight);
  for (int part = 1; part < numParts; ++part) {
    std::vector<BitPlace> next;
    if (more) {
      if (!parseWeight(line, draft.format.bits, next, more) ||
          more != (part + 1 < numParts))
        return false;
      draft.set(slot, part, next);
      continue;
    }
    for (const BitPlace &place : weight)
      next.push_back(getAlike(place, part, numParts));
    draft.set(slot, part, next);
  }
  return true;
}

static std::optional<Draft> parseHeaderLine(const std::string &content) {
  std::istringstream line(content);
  std::string keyword, name, tiles, steps;
  int rowTiles = 0, period = 0;
  if (!(line >> keyword >> name >> tiles >> rowTiles >> steps >> period) ||
      tiles != "tiles" || steps != "steps")
    return std::nullopt;
  size_t dot = name.find('.');
  if (dot == std::string::npos)
    return std::nullopt;
  Result<CodeFormat> format = CodeFormat::parse(name.substr(0, dot));
  Result<ComputeType> compute = parseComputeType(name.substr(dot + 1));
  if (!format || !compute || rowTiles < 1 || rowTiles > 4 || period < 1)
    return std::nullopt;
  Draft draft(*format, *compute, rowTiles, period);
  if (draft.order.numSteps % period ||
      format->bits * rowTiles * period % draft.order.numSteps)
    return std::nullopt;
  return draft;
}

Result<std::vector<Placement>> lowlp::parsePlacements(std::string_view text) {
  std::vector<Placement> placements;
  std::optional<Draft> draft;
  auto finish = [&]() -> Result<bool> {
    if (!draft)
      return true;
    Result<Placement> made = Placement::create(draft->format, draft->compute,
                                               draft->rowTiles, draft->places);
    if (!made)
      return Error{made.error() + ", in " + draft->format.name() + "." +
                   getName(draft->compute)};
    placements.push_back(*made);
    return true;
  };
  std::istringstream lines{std::string(text)};
  std::string content;
  for (int number = 1; std::getline(lines, content); ++number) {
    auto fail = [&] {
      return Error{"placements: line " + std::to_string(number) +
                   " is not understood: '" + content + "'"};
    };
    if (content.empty() || content[0] == '#')
      continue;
    if (content.rfind("placement ", 0) == 0) {
      if (Result<bool> done = finish(); !done)
        return Error{done.error()};
      draft = parseHeaderLine(content);
      if (!draft)
        return fail();
      continue;
    }
    if (!draft || !parseSlotLine(content, *draft))
      return fail();
  }
  if (Result<bool> done = finish(); !done)
    return Error{done.error()};
  return placements;
}

//===----------------------------------------------------------------------===//
// The packed format
//===----------------------------------------------------------------------===//

static constexpr const char *const kPackedFormat =
#include "PackedFormat4.inc"
    ;

const std::vector<Placement> &Placement::all() {
  static const std::vector<Placement> placements = [] {
    Result<std::vector<Placement>> parsed = parsePlacements(kPackedFormat);
    if (!parsed) {
      std::fprintf(stderr, "the packed format is damaged: %s\n",
                   parsed.error().c_str());
      std::abort();
    }
    return *parsed;
  }();
  return placements;
}

const std::vector<Placement> &Placement::general() {
  static const std::vector<Placement> placements = [] {
    std::vector<Placement> made;
    for (int bits = ScalarFormat::maxCodeBits + 1; bits <= CodeFormat::maxBits;
         ++bits)
      for (ComputeType compute : {ComputeType::F16, ComputeType::BF16})
        made.push_back(Placement::contiguous(*CodeFormat::table(bits), compute,
                                             /*rowTiles=*/1));
    return made;
  }();
  return placements;
}
