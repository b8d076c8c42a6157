//===- RunPlacement.cpp - Where the bits of integers had best be ----------===//
//
// A word is cut into runs: whole codes, and what these leave over, of which the
// remaining codes are put together:
//
//   bit     0    6    10    16
//           | u0 | .. | u1  |      three words of 6-bit integers: six whole
//           | u2 | .. | u3  |      codes, and two of 4 + 2 bits
//           | u4 | .,,| u5  |
//
// Each run is a mask and each word at most a rotation, so the cost of a cut is
// known but for the products that even out powers of two. The cheapest cuts are
// tried in full. Words of a block are cut in at most two ways.
//
//===----------------------------------------------------------------------===//
#include "PlacementDraft.h"

#include <algorithm>
#include <tuple>

using namespace lowlp;

/// How many of the cheapest cuts are tried, and of these improved.
static constexpr size_t kNumTried = 48;
static constexpr size_t kNumImproved = 4;

namespace {
struct Run {
  int start;
  int length;
  bool isWhole;
};
using Cut = std::vector<Run>;

struct Candidate {
  int cost;
  /// Breaks ties.
  size_t number;
  std::vector<const Cut *> words;
};

/// Bits of a code that lie side by side.
struct Part {
  int word;
  int start;
  int length;
};
using Field = std::vector<Part>;
} // namespace

/// All ways to lay `whole` codes into a word with gaps of `left` bits in all
/// between them; the same with the gap around bit 8 cut there.
static void addCuts(std::vector<Cut> &cuts, Cut cut, int start, int whole,
                    int left, int bits) {
  int half = 8;
  for (int gap = whole ? 0 : left; gap <= left; ++gap) {
    Cut next = cut;
    if (gap)
      next.push_back({start, gap, false});
    if (whole) {
      next.push_back({start + gap, bits, true});
      addCuts(cuts, next, start + gap + bits, whole - 1, left - gap, bits);
      continue;
    }
    cuts.push_back(next);
    for (size_t i = 0; i < next.size(); ++i) {
      Run run = next[i];
      if (run.isWhole || run.start >= half || run.start + run.length <= half)
        continue;
      next[i].length = half - run.start;
      next.insert(next.begin() + static_cast<int>(i) + 1,
                  {half, run.start + run.length - half, false});
      cuts.push_back(next);
      break;
    }
  }
}

/// A word's masks are counted with the codes; this is what shows its runs.
static int countWord(const Cut &cut, int window) {
  bool isShown = true, isCutAtByte = false;
  int inByte = 0;
  for (const Run &run : cut) {
    isShown &= run.start + run.length <= window;
    isCutAtByte |= run.start == 8;
    inByte += run.start >= 8;
  }
  if (isShown)
    return 0;
  int byByte =
      isCutAtByte ? (inByte - 1) * kReferenceRates.fma : kReferenceRates.alu;
  for (int amount = 1; amount < 16; ++amount)
    if (std::all_of(cut.begin(), cut.end(), [&](const Run &run) {
          return run.start + run.length <= window ||
                 (run.start >= amount &&
                  run.start + run.length <= amount + window);
        }))
      return std::min(byByte, kReferenceRates.alu);
  return isCutAtByte ? byByte : 2 * kReferenceRates.alu;
}

/// Codes of the runs that are left over, of few pieces: each takes a run that
/// just fits, or else the longest that does, or else part of one.
static std::vector<Field> fill(const std::vector<const Cut *> &words,
                               int bits) {
  std::vector<Part> left;
  for (size_t word = 0; word < words.size(); ++word)
    for (const Run &run : *words[word])
      if (!run.isWhole)
        left.push_back({static_cast<int>(word), run.start, run.length});
  std::vector<Field> fields;
  while (!left.empty()) {
    Field field;
    for (int need = bits; need > 0;) {
      auto rank = [&](const Part &part) {
        return part.length == need  ? 100
               : part.length < need ? part.length
                                    : -part.length;
      };
      auto best = std::max_element(
          left.begin(), left.end(),
          [&](const Part &a, const Part &b) { return rank(a) < rank(b); });
      Part taken = *best;
      taken.length = std::min(taken.length, need);
      need -= taken.length;
      best->start += taken.length;
      best->length -= taken.length;
      if (!best->length)
        left.erase(best);
      field.push_back(taken);
    }
    fields.push_back(field);
  }
  return fields;
}

static std::vector<Field> getFields(const std::vector<const Cut *> &words,
                                    int bits) {
  std::vector<Field> fields;
  for (size_t word = 0; word < words.size(); ++word)
    for (const Run &run : *words[word])
      if (run.isWhole)
        fields.push_back({{static_cast<int>(word), run.start, bits}});
  std::sort(fields.begin(), fields.end(), [](const Field &a, const Field &b) {
    return std::tie(a[0].start, a[0].word) < std::tie(b[0].start, b[0].word);
  });
  for (const Field &field : fill(words, bits))
    fields.push_back(field);
  return fields;
}

static std::vector<Candidate> getCandidates(const PlacementDraft &draft,
                                            int window,
                                            const std::vector<Cut> &cuts) {
  std::vector<Candidate> candidates;
  int bits = draft.format.bits, numWords = draft.getNumWords();
  for (size_t a = 0; a < cuts.size(); ++a)
    for (size_t b = a; b < cuts.size(); ++b)
      for (int first = 1; first <= (a == b ? 1 : numWords - 1); ++first) {
        Candidate candidate = {0, candidates.size(), {}};
        for (int word = 0; word < numWords; ++word) {
          candidate.words.push_back(word < first ? &cuts[a] : &cuts[b]);
          candidate.cost += countWord(*candidate.words.back(), window);
        }
        for (const Field &field : getFields(candidate.words, bits)) {
          int pieces = static_cast<int>(field.size());
          candidate.cost +=
              pieces * kReferenceRates.alu + (pieces - 1) * kReferenceRates.fma;
        }
        candidates.push_back(candidate);
      }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return std::tie(a.cost, a.number) < std::tie(b.cost, b.number);
            });
  if (candidates.size() > kNumTried)
    candidates.resize(kNumTried);
  return candidates;
}

/// Codes given to the slots: dealt out to the rows one by one, or row by row.
static PlacementDraft assign(PlacementDraft draft,
                             const std::vector<Field> &fields, bool isDealt) {
  std::vector<std::vector<int>> slotsOfRow(draft.getNumRows());
  for (int index = 0; index < draft.getNumSlots(); ++index)
    slotsOfRow[draft.getRow(index)].push_back(index);
  int perRow = draft.getNumSlots() / draft.getNumRows();
  for (size_t i = 0; i < fields.size(); ++i) {
    int number = static_cast<int>(i);
    int row = isDealt ? number % draft.getNumRows() : number / perRow;
    std::vector<int> &slots = slotsOfRow[row];
    std::vector<BitPlace> &places = draft.places[slots.front()];
    slots.erase(slots.begin());
    int bit = 0;
    for (const Part &part : fields[i])
      for (int k = 0; k < part.length; ++k)
        places[bit++] = {part.word, part.start + k};
  }
  return draft;
}

PlacementDraft lowlp::searchRuns(const CodeFormat &format,
                                 ComputeType compute) {
  PlacementDraft draft(format, compute);
  int window = Homes::get(format, compute)->window;
  std::vector<Cut> cuts;
  int most = draft.getNumResidues() / format.bits;
  for (int whole = most; whole >= std::max(1, most - 1); --whole)
    addCuts(cuts, {}, 0, whole, draft.getNumResidues() - whole * format.bits,
            format.bits);
  std::vector<PlacementDraft> drafts;
  std::vector<std::pair<int, size_t>> order;
  for (const Candidate &candidate : getCandidates(draft, window, cuts)) {
    std::vector<Field> fields = getFields(candidate.words, format.bits);
    for (bool isDealt : {true, false}) {
      order.push_back({0, drafts.size()});
      drafts.push_back(assign(draft, fields, isDealt));
      order.back().first = drafts.back().getCost();
    }
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), kNumImproved));
  for (auto &[cost, number] : order) {
    improveRows(drafts[number]);
    cost = drafts[number].getCost();
  }
  return drafts[std::min_element(order.begin(), order.end())->second];
}
