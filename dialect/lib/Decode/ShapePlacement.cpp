//===- ShapePlacement.cpp - Where the bits of floats had best be ----------===//
//
// A code whose bits have homes has a shape: the set of its homes, which a
// rotation turns. Words are filled at random with whole shapes that do not
// touch, those of rotations that the word has already first; what is left over
// is handed out, piece by piece, to the remaining codes, or to merged words
// that hold two of them (MaskSearch.h). This is done many times, and the
// cheapest result of all is taken. The random numbers are always the same.
// Where tiles that lie alike cost as little, they are taken.
//
//===----------------------------------------------------------------------===//
#include "PlacementDraft.h"

#include <algorithm>
#include <bitset>
#include <cassert>
#include <optional>

using namespace lowlp;

static constexpr int kNumAttempts = 20000;

namespace {
/// xorshift32 (Marsaglia, 2003).
class Random {
public:
  /// From 0 to bound - 1.
  int below(int bound) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return static_cast<int>((state >> 8) % static_cast<uint32_t>(bound));
  }

private:
  uint32_t state = 0x9e3779b9;
};

struct Word {
  uint32_t free;
  /// Bit s: there is a rotation by s.
  uint32_t rotations = 1;
};

/// A code in a register that its bits are gathered in: turned by `amount`.
struct Member {
  int slot;
  int amount;
};

class Attempt {
public:
  Attempt(const Homes &homes, Random &random)
      : draft(homes.format, homes.compute), homes(homes), random(random),
        residues(draft.getNumResidues()),
        words(draft.getNumWords(), Word{all()}) {}

  /// Instructions of the ALU, at most.
  int run();

  PlacementDraft draft;

private:
  uint32_t all() const { return (1u << residues) - 1; }
  uint32_t turn(uint32_t mask, int amount) const {
    amount = (amount % residues + residues) % residues;
    return (mask << amount | mask >> (residues - amount)) & all();
  }
  int fillWord(int word);
  int gather();
  std::vector<Member> chooseMembers();
  int cover(const std::vector<Member> &members, uint32_t need, int eagerness);
  void place(const Member &member, uint32_t bits, int word, int rotation);

  const Homes &homes;
  Random &random;
  int residues;
  std::vector<Word> words;
  std::vector<int> shiftOfRow;
  /// The homes of each slot.
  std::vector<uint32_t> shapes;
  std::vector<int> open;
};
} // namespace

static int countBits(uint32_t bits) {
  return static_cast<int>(std::bitset<32>(bits).count());
}

/// Notes that the homes `bits` of a register lie in a word that is rotated.
void Attempt::place(const Member &member, uint32_t bits, int word,
                    int rotation) {
  for (int bit = 0; bit < homes.format.bits; ++bit) {
    int home = homes.getHome(bit, shiftOfRow[draft.getRow(member.slot)]) +
               member.amount;
    if (bits >> (home % residues) & 1)
      draft.places[member.slot][bit] = {word, (home + rotation) % 32};
  }
  words[word].free &= ~turn(bits, rotation);
}

/// Puts whole codes in a word; the result is their masks and rotations.
int Attempt::fillWord(int word) {
  int cost = 0;
  while (random.below(16)) {
    std::vector<std::pair<size_t, int>> choices;
    bool isFree = false;
    for (size_t i = 0; i < open.size(); ++i) {
      uint32_t shape = shapes[open[i]];
      if (i && shape == shapes[open[i - 1]])
        continue;
      for (int amount = 0; amount < residues; ++amount) {
        if (turn(shape, amount) & ~words[word].free)
          continue;
        bool isKnown = words[word].rotations >> amount & 1;
        if (isKnown && !isFree)
          choices.clear();
        isFree |= isKnown;
        if (isKnown || !isFree)
          choices.push_back({i, amount});
      }
    }
    if (choices.empty())
      break;
    auto [index, amount] =
        choices[random.below(static_cast<int>(choices.size()))];
    place({open[index], 0}, shapes[open[index]], word, amount);
    open.erase(open.begin() + static_cast<int>(index));
    words[word].rotations |= 1u << amount;
    cost += isFree ? 1 : 2;
  }
  return cost;
}

/// Takes one or two codes of those that are open.
std::vector<Member> Attempt::chooseMembers() {
  auto take = [&] {
    int index = random.below(static_cast<int>(open.size()));
    int slot = open[index];
    open.erase(open.begin() + index);
    return slot;
  };
  std::vector<Member> members = {{take(), 0}};
  if (open.empty() || random.below(2))
    return members;
  int frame = random.below(2) ? 0 : random.below(residues);
  Member second = {take(), 0};
  std::vector<int> amounts;
  uint32_t shape = turn(shapes[members[0].slot], frame);
  for (int amount = 0; amount < residues; ++amount)
    if (!(turn(shapes[second.slot], amount) & shape))
      amounts.push_back(amount);
  if (amounts.empty()) {
    open.push_back(second.slot);
    return members;
  }
  members[0].amount = frame;
  second.amount = amounts[random.below(static_cast<int>(amounts.size()))];
  members.push_back(second);
  return members;
}

/// Gathers bits of the words until `need` has all; the result is the pieces and
/// new rotations.
int Attempt::cover(const std::vector<Member> &members, uint32_t need,
                   int eagerness) {
  int cost = 0;
  while (need) {
    int bestWord = -1, bestRotation = 0, bestRank = -1000;
    for (size_t word = 0; word < words.size(); ++word)
      for (int rotation = 0; words[word].free && rotation < residues;
           ++rotation) {
        uint32_t seen = turn(words[word].free, -rotation) & need;
        if (!seen)
          continue;
        bool isNew = !(words[word].rotations >> rotation & 1);
        int rank = 8 * countBits(seen) - eagerness * isNew + random.below(6);
        if (rank > bestRank) {
          bestRank = rank;
          bestWord = static_cast<int>(word);
          bestRotation = rotation;
        }
      }
    assert(bestWord >= 0 && "as many bits are left as are needed");
    uint32_t seen = turn(words[bestWord].free, -bestRotation) & need;
    cost += words[bestWord].rotations >> bestRotation & 1 ? 1 : 2;
    words[bestWord].rotations |= 1u << bestRotation;
    need &= ~seen;
    for (const Member &member : members)
      place(member, seen & turn(shapes[member.slot], member.amount), bestWord,
            bestRotation);
  }
  return cost;
}

/// Makes the open codes of what the words have left.
int Attempt::gather() {
  int cost = 0, eagerness = 4 + random.below(16);
  while (!open.empty()) {
    std::vector<Member> members = chooseMembers();
    uint32_t need = 0;
    for (const Member &member : members)
      need |= turn(shapes[member.slot], member.amount);
    cost += cover(members, need, eagerness);
    if (members.size() > 1)
      for (const Member &member : members)
        cost += member.amount ? 2 : 1;
    cost -= members.size() > 1;
  }
  return cost;
}

int Attempt::run() {
  // Side by side, as far as that goes, or at random.
  int numShifts = homes.getNumShifts(), bits = homes.format.bits;
  bool isSideBySide = random.below(2);
  for (int row = 0; row < draft.getNumRows(); ++row)
    shiftOfRow.push_back(isSideBySide
                             ? row % ((numShifts - 1) / bits + 1) * bits
                             : random.below(numShifts));
  for (int slot = 0; slot < draft.getNumSlots(); ++slot) {
    uint32_t shape = 0;
    for (int bit = 0; bit < bits; ++bit)
      shape |= 1u << homes.getHome(bit, shiftOfRow[draft.getRow(slot)]);
    shapes.push_back(shape);
    open.push_back(slot);
  }
  int cost = 0;
  for (size_t word = 0; word < words.size(); ++word)
    cost += fillWord(static_cast<int>(word));
  return cost + gather();
}

/// Whole codes in order, tile by tile, so that tiles are a rotation apart: a
/// warp that takes one tile of a unit rotates its words (findTileShift). The
/// first tile has the bits that cost least: signed bytes are made of their top
/// bits, 8-bit floats of low ones, which are subnormal numbers. None where the
/// codes of a step do not fill a word for each half of K.
static std::optional<PlacementDraft> layTilesAlike(const Homes &homes) {
  PlacementDraft draft(homes.format, homes.compute);
  int bits = homes.format.bits;
  if (draft.rowTiles == 1 ||
      draft.getNumRows() * bits != draft.getNumResidues())
    return std::nullopt;
  bool isFirstOnTop = homes.compute == ComputeType::S8;
  for (int slot = 0; slot < draft.getNumSlots(); ++slot) {
    int row = draft.getRow(slot);
    int tile = isFirstOnTop ? draft.rowTiles - 1 - row / 2 : row / 2;
    for (int bit = 0; bit < bits; ++bit)
      draft.places[slot][bit] = {slot % 4 / 2,
                                 (2 * tile + row % 2) * bits + bit};
  }
  return draft;
}

PlacementDraft lowlp::searchShapes(const Homes &homes) {
  Random random;
  PlacementDraft best(homes.format, homes.compute);
  int bestCost = -1, bestMasks = -1;
  for (int number = 0; number < kNumAttempts; ++number) {
    Attempt attempt(homes, random);
    int masks = attempt.run();
    // The bound does not know of all that a plan may share.
    if (bestMasks >= 0 && masks > bestMasks + 1)
      continue;
    bestMasks = bestMasks < 0 ? masks : std::min(masks, bestMasks);
    int cost = attempt.draft.getCost();
    if (bestCost < 0 || cost < bestCost) {
      bestCost = cost;
      best.places = attempt.draft.places;
    }
  }
  std::optional<PlacementDraft> alike = layTilesAlike(homes);
  return alike && alike->getCost() <= bestCost ? *alike : best;
}
