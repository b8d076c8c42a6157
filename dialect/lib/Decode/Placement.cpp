//===- Placement.cpp - Where each bit of packed weights is ----------------===//
#include "lowlp/Decode/Placement.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <numeric>

using namespace lowlp;

Result<Placement> Placement::create(CodeFormat format, ComputeType compute,
                                    int rowTiles,
                                    std::vector<BitPlace> places) {
  auto fail = [](const std::string &what) -> Result<Placement> {
    return Error{"placement: " + what};
  };
  if (rowTiles != 1 && rowTiles != 2 && rowTiles != 4)
    return fail("a unit has 1, 2 or 4 tiles of 16 rows, got " +
                std::to_string(rowTiles));
  Placement placement(format, FragmentFamily{compute}, rowTiles,
                      std::move(places));
  size_t words = placement.getNumWords();
  if (placement.places.size() != words * 32)
    return fail("expected " + std::to_string(words * 32) + " places, got " +
                std::to_string(placement.places.size()));
  std::vector<bool> taken(words * 32);
  for (const BitPlace &place : placement.places) {
    if (place.word < 0 || place.word >= static_cast<int>(words) ||
        place.bit < 0 || place.bit >= 32)
      return fail("bit " + std::to_string(place.bit) + " of word " +
                  std::to_string(place.word) + " is outside of " +
                  std::to_string(words) + " words of 32 bits");
    size_t flat = place.word * 32 + place.bit;
    if (taken[flat])
      return fail("bit " + std::to_string(place.bit) + " of word " +
                  std::to_string(place.word) + " is taken twice");
    taken[flat] = true;
  }
  return placement;
}

Placement Placement::contiguous(CodeFormat format, ComputeType compute,
                                int rowTiles, std::vector<int> slices) {
  if (slices.empty())
    slices = {format.bits};
  int weights = 32 * rowTiles;
  std::vector<BitPlace> places(static_cast<size_t>(weights) * format.bits);
  int start = 0, firstBit = 0;
  for (int width : slices) {
    for (int weight = 0; weight < weights; ++weight)
      for (int bit = 0; bit < width; ++bit) {
        int flat = start + weight * width + bit;
        places[weight * format.bits + firstBit + bit] = {flat / 32, flat % 32};
      }
    start += weights * width;
    firstBit += width;
  }
  assert(firstBit == format.bits && "slices must add up to the bits");
  return Placement(format, FragmentFamily{compute}, rowTiles,
                   std::move(places));
}

/// The places of so many codes without gaps.
static std::vector<BitPlace> placeSideBySide(int count, int bits) {
  std::vector<BitPlace> places(static_cast<size_t>(count) * bits);
  for (size_t flat = 0; flat < places.size(); ++flat)
    places[flat] = {static_cast<int>(flat / 32), static_cast<int>(flat % 32)};
  return places;
}

Placement Placement::ofVectors(CodeFormat format, ComputeType compute) {
  assert(format.kind == CodeFormat::Kind::Vectors && "codes of vectors");
  // A step of a tile of 16 rows has two slots. As many steps as make accesses
  // of 16 bytes: at most 16, with which the words are whole, and no less than
  // make units 64 wide.
  // Codes with a spare bit have as many as without, if their words are whole.
  int bitsPerSlot = (format.bits - format.spare) * format.codes;
  int steps = std::min(16, 64 / std::gcd(bitsPerSlot, 64));
  if (steps * format.bits * format.codes % 16)
    steps = 16;
  steps = std::max(steps, 16 / format.vector);
  FragmentFamily family = {compute};
  family.unitK = FragmentFamily::rowLanes * format.vector * steps;
  return Placement(format, family, /*rowTiles=*/1,
                   placeSideBySide(2 * steps * format.codes, format.bits));
}

Placement Placement::ofBits(CodeFormat format) {
  FragmentFamily family = {ComputeType::B1};
  family.unitK = family.getStepK();
  int parts = family.getParts();
  std::vector<BitPlace> places;
  for (int slot = 0; slot < 4; ++slot)
    for (int part = 0; part < parts; ++part)
      for (int bit = 0; bit < format.bits; ++bit)
        places.push_back({4 * bit + slot, getBitOfPart(part)});
  return Placement(format, family, /*rowTiles=*/1, std::move(places));
}

const std::vector<Placement> &Placement::planes() {
  static const std::vector<Placement> placements = [] {
    std::vector<Placement> made;
    for (int bits = 1; bits <= ScalarFormat::maxCodeBits; ++bits)
      made.push_back(ofBits({CodeFormat::Kind::Integer, bits}));
    return made;
  }();
  return placements;
}

std::vector<int> Placement::getUnitKs() const {
  std::vector<int> widths;
  int least = family.getStepK(), most = family.getWidestUnitK();
  if (isOfVectors()) {
    least = std::max(least, FragmentFamily::rowLanes * format.vector);
    most = getUnitK() * rowTiles;
  }
  for (int unitK = most; unitK >= least && unitK >= 16; unitK /= 2)
    widths.push_back(unitK);
  return widths;
}

Placement Placement::withUnitK(int unitK) const {
  assert(unitK >= family.getStepK() && getUnitK() * rowTiles % unitK == 0 &&
         "a unit has whole steps");
  FragmentFamily narrower = family;
  narrower.unitK = unitK;
  return Placement(format, narrower, rowTiles * getUnitK() / unitK, places);
}

std::vector<int> Placement::findSlices() const {
  if (isOfVectors())
    return {format.bits};
  if (family.compute == ComputeType::B1)
    return {};
  Placement wide = withUnitK(FragmentFamily::maxUnitK);
  // Within a slice the bits of the first weight follow each other.
  std::vector<int> slices;
  for (int bit = 0; bit < format.bits; ++bit) {
    BitPlace place = getPlace(0, 0, bit);
    bool isNext =
        bit > 0 && places[bit - 1] == BitPlace{place.word, place.bit - 1};
    if (isNext)
      ++slices.back();
    else
      slices.push_back(1);
  }
  if (contiguous(format, family.compute, wide.rowTiles, slices).places !=
      places)
    return {};
  return slices;
}

//===----------------------------------------------------------------------===//
// Those of the packed format
//===----------------------------------------------------------------------===//

/// The placements in units of all shapes, by name.
static const std::map<std::string, Placement, std::less<>> &getByName() {
  static const auto placements = [] {
    std::map<std::string, Placement, std::less<>> found;
    for (const std::vector<Placement> *wide :
         {&Placement::all(), &Placement::general(), &Placement::planes()})
      for (const Placement &placement : *wide)
        for (int unitK : placement.getUnitKs()) {
          Placement shaped = placement.withUnitK(unitK);
          found.emplace(shaped.name(), std::move(shaped));
        }
    return found;
  }();
  return placements;
}

/// The placement of vectors of this name, made at its first use: there are
/// thousands. Null where there is none.
static const Placement *findOfVectors(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, Placement, std::less<>> known;
  size_t dot = name.find('.');
  if (dot == std::string_view::npos)
    return nullptr;
  std::scoped_lock lock(mutex);
  if (auto found = known.find(name); found != known.end())
    return &found->second;
  Result<CodeFormat> format = CodeFormat::parse(name.substr(0, dot));
  Result<FragmentFamily> family = FragmentFamily::parse(name.substr(dot + 1));
  if (!format || !family || format->kind != CodeFormat::Kind::Vectors ||
      !family->isOfHalves())
    return nullptr;
  Placement widest = Placement::ofVectors(*format, family->compute);
  for (int unitK : widest.getUnitKs()) {
    Placement shaped = widest.withUnitK(unitK);
    known.emplace(shaped.name(), std::move(shaped));
  }
  auto found = known.find(name);
  return found == known.end() ? nullptr : &found->second;
}

Result<const Placement *> Placement::find(CodeFormat format,
                                          FragmentFamily family) {
  return find(format.name() + "." + family.name());
}

Result<const Placement *> Placement::find(std::string_view name) {
  auto found = getByName().find(name);
  if (found != getByName().end())
    return &found->second;
  if (const Placement *ofVectors = findOfVectors(name))
    return ofVectors;
  return Error{"placement: packed format " + std::to_string(formatVersion) +
               " has none named '" + std::string(name) +
               "'; names are int6.f16, e3m2.bf16, lut4.f16.k32, vec8-2x8.f16 "
               "and so on"};
}

const Placement &Placement::forMatrix(int64_t n, int64_t k) const {
  const Placement *best = nullptr;
  int64_t leastUnits = 0;
  for (int unitK : getUnitKs()) {
    FragmentFamily shape = family;
    shape.unitK = unitK;
    const Placement *placement = *find(format, shape);
    // All units have as many words.
    int64_t rows = placement->getUnitRows();
    int64_t units = ((n + rows - 1) / rows) * ((k + unitK - 1) / unitK);
    if (!best || units < leastUnits)
      best = placement, leastUnits = units;
  }
  return *best;
}

std::string Placement::name() const {
  return format.name() + "." + family.name();
}

int Placement::getWordsPerAccess() const { return std::gcd(getNumWords(), 4); }

uint16_t Placement::extract(const uint32_t *words, int slot, int part) const {
  unsigned code = 0;
  for (int bit = 0; bit < format.bits; ++bit) {
    BitPlace place = getPlace(slot, part, bit);
    code |= (words[place.word] >> place.bit & 1) << bit;
  }
  return static_cast<uint16_t>(code);
}

void Placement::insert(uint32_t *words, int slot, int part,
                       uint16_t stored) const {
  for (int bit = 0; bit < format.bits; ++bit) {
    BitPlace place = getPlace(slot, part, bit);
    words[place.word] |= (stored >> bit & 1u) << place.bit;
  }
}
