//===- PieceSearch.cpp - Integers as sums of pieces -----------------------===//
//
// The views of the words are improved one word at a time until none gets
// better; the best form of each row follows from the views.
//
//===----------------------------------------------------------------------===//
#include "PieceSearch.h"

#include <algorithm>
#include <limits>

using namespace lowlp;

/// Slots that are looked at again for another view of a word.
static constexpr int kNumTried = 30000;

static constexpr int kImpossible = std::numeric_limits<int>::max() / 4;

/// The amount modulo 32, from -16 to 15.
static int toSigned(int amount) { return ((amount + 16) & 31) - 16; }

//===----------------------------------------------------------------------===//
// Pieces and what they can be
//===----------------------------------------------------------------------===//

bool PiecePlan::findPieces() {
  piecesOfSlot.resize(period.getNumSlots());
  piecesOfWord.resize(period.numWords);
  for (int index = 0; index < period.getNumSlots(); ++index) {
    if (!period.arePartsAlike(index))
      return false;
    std::map<std::pair<int, int>, uint32_t> found;
    for (int bit = 0; bit < homes.format.bits; ++bit) {
      BitPlace place = period.getPlace(index, 0, bit);
      found[{place.word, (place.bit - bit + 32) % 32}] |= 1u << bit;
    }
    for (auto [source, bits] : found) {
      int low = 0, high = homes.format.bits - 1;
      for (; !(bits >> low & 1); ++low)
        ;
      for (; !(bits >> high & 1); --high)
        ;
      piecesOfSlot[index].push_back(pieces.size());
      piecesOfWord[source.first].push_back(pieces.size());
      pieces.push_back({source.first, source.second, index, low, high, bits});
    }
  }
  return true;
}

bool PiecePlan::isInWindow(const Piece &piece, int shift, int window) const {
  // More to the right, and f16 has no power of two to bring it back.
  int lowest = homes.compute == ComputeType::F16 ? -6 : -8;
  return shift >= lowest && piece.low + shift >= 0 &&
         piece.high + shift < window;
}

bool PiecePlan::isInByte(const Piece &piece, int byte) const {
  int first = (piece.origin + piece.low) % 32;
  return first >= byte && first + piece.high - piece.low < byte + 8;
}

/// The shifts at which a view of its word shows a piece.
std::vector<int> PiecePlan::getShifts(const Piece &piece, const WordView &view,
                                      int window) const {
  std::vector<int> shifts;
  if (view.byte >= 0 && isInByte(piece, view.byte)) {
    int shift = toSigned(piece.origin - view.byte);
    if (isInWindow(piece, shift, window))
      shifts.push_back(shift);
    return shifts;
  }
  for (int rotation : view.rotations)
    if (int shift = toSigned(piece.origin - rotation);
        isInWindow(piece, shift, window))
      shifts.push_back(shift);
  return shifts;
}

/// A shift for each piece of a slot, as few different ones as can be; empty if
/// a piece cannot be seen.
std::vector<int> PiecePlan::chooseShifts(int slot, const RowForm &form) const {
  int window = form.isMagic ? kMagicWindow : homes.window;
  std::vector<std::vector<int>> choices;
  choices.reserve(piecesOfSlot[slot].size());
  std::map<int, int> uses;
  for (size_t piece : piecesOfSlot[slot]) {
    choices.push_back(
        getShifts(pieces[piece], views[pieces[piece].word], window));
    if (choices.back().empty())
      return {};
    for (int shift : choices.back())
      ++uses[shift];
  }
  uses[form.shift] = kImpossible;
  std::vector<int> chosen;
  chosen.reserve(choices.size());
  for (const std::vector<int> &shifts : choices)
    chosen.push_back(
        *std::max_element(shifts.begin(), shifts.end(),
                          [&](int a, int b) { return uses[a] < uses[b]; }));
  return chosen;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// Whether the pieces in a byte fill it.
bool PiecePlan::isByteWhole(int word, int byte) const {
  int bits = 0;
  for (size_t piece : piecesOfWord[word])
    if (isInByte(pieces[piece], byte))
      for (int bit = 0; bit < homes.format.bits; ++bit)
        bits += pieces[piece].bits >> bit & 1;
  return bits == 8;
}

/// What can be made of a word with as few rotations as show all its pieces.
std::vector<WordView> PiecePlan::getViews(int word) const {
  std::vector<WordView> found;
  auto add = [&](const WordView &view) {
    for (size_t piece : piecesOfWord[word])
      if (getShifts(pieces[piece], view, homes.window).empty())
        return;
    found.push_back(view);
  };
  add({});
  for (int byte : {8, 24})
    if (isByteWhole(word, byte))
      add({{0}, byte});
  for (int rotation = 1; rotation < 32; ++rotation)
    add({{0, rotation}, -1});
  if (!found.empty())
    return found;
  for (int first = 1; first < 32; ++first)
    for (int second = first + 1; second < 32; ++second)
      add({{0, first, second}, -1});
  return found;
}

/// A word's rotations, or the PRMT and what it brings.
int PiecePlan::countWord(int word) const {
  const WordView &view = views[word];
  int cost = (static_cast<int>(view.rotations.size()) - 1) * rates.alu;
  if (view.byte < 0)
    return cost;
  int inByte = 0;
  for (size_t piece : piecesOfWord[word])
    inByte += isInByte(pieces[piece], view.byte);
  // One PRMT more and one mask less.
  return cost + (inByte - 1) * rates.fma;
}

int PiecePlan::countSlot(int slot, const RowForm &form) const {
  std::vector<int> shifts = chooseShifts(slot, form);
  if (shifts.empty())
    return kImpossible;
  int masks = static_cast<int>(shifts.size());
  std::sort(shifts.begin(), shifts.end());
  shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
  // Products by more than 2^lift cannot be made.
  int lift = getLift(homes.compute);
  for (int shift : shifts) {
    int factor = form.shift - shift;
    if (homes.compute == ComputeType::BF16 && !form.isMagic)
      factor += lift;
    if (ending == DecodeEnding::Accumulators && factor > lift)
      return kImpossible;
  }
  return masks * rates.alu + countFmas(homes, ending, form, shifts) * rates.fma;
}

/// The best form of each row with the views as they are, and the cost of all.
int PiecePlan::chooseRows() {
  std::vector<RowForm> forms;
  if (ending == DecodeEnding::Weights)
    forms = {{0, false}};
  else if (homes.compute == ComputeType::F16)
    for (int shift = homes.window; shift >= 0; --shift)
      forms.push_back({shift, false});
  else
    // After the lift there is room below.
    for (int shift = 0; shift >= -6; --shift)
      forms.push_back({shift, false});
  if (ending == DecodeEnding::Accumulators &&
      homes.compute == ComputeType::BF16)
    for (int shift = 0; shift + homes.format.bits <= kMagicWindow; ++shift)
      forms.push_back({shift, true});
  int total = 0;
  for (int word = 0; word < period.numWords; ++word)
    total += countWord(word);
  for (size_t row = 0; row < rows.size(); ++row) {
    int best = kImpossible;
    for (const RowForm &form : forms) {
      int cost = 0;
      for (int index = 0; index < period.getNumSlots() && cost < best; ++index)
        if (period.getRow(index) == static_cast<int>(row))
          cost += countSlot(index, form);
      if (cost < best) {
        best = cost;
        rows[row] = form;
      }
    }
    if (best == kImpossible)
      return kImpossible;
    total += best;
  }
  return total;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

std::optional<PiecePlan> PiecePlan::search(const Period &period,
                                           const Homes &homes,
                                           DecodeEnding ending,
                                           const DecodeRates &rates) {
  PiecePlan plan(period, homes, ending, rates);
  plan.rows.resize(period.getNumRows());
  plan.views.resize(period.numWords);
  if (!plan.findPieces())
    return std::nullopt;
  std::vector<std::vector<WordView>> choices;
  for (int word = 0; word < period.numWords; ++word) {
    choices.push_back(plan.getViews(word));
    if (choices.back().empty())
      return std::nullopt;
    plan.views[word] = choices.back().front();
  }
  int best = plan.chooseRows();
  int budget = kNumTried / period.getNumSlots();
  for (bool isBetter = true; isBetter;) {
    isBetter = false;
    for (int word = 0; word < period.numWords; ++word) {
      WordView bestView = plan.views[word];
      for (const WordView &view : choices[word]) {
        if (--budget < 0)
          break;
        plan.views[word] = view;
        if (int cost = plan.chooseRows(); cost < best) {
          best = cost;
          bestView = view;
          isBetter = true;
        }
      }
      plan.views[word] = bestView;
    }
  }
  plan.cost = plan.chooseRows();
  if (plan.cost >= kImpossible)
    return std::nullopt;
  return plan;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

bool PiecePlan::isRemainder(size_t index, const RowForm &form) const {
  const Piece &piece = pieces[index];
  int byte = views[piece.word].byte;
  if (byte < 0 || form.isMagic || !isInByte(piece, byte))
    return false;
  for (size_t other : piecesOfWord[piece.word])
    if (other > index && isInByte(pieces[other], byte))
      return false;
  return true;
}

/// The piece, OR'ed with `sum`.
int PiecePlan::emitPiece(Sequence &sequence, int block, size_t index, int shift,
                         const RowForm &form, DecodeOperand sum) const {
  const Piece &piece = pieces[index];
  int byte = views[piece.word].byte;
  int word = block * period.numWords + piece.word;
  uint32_t mask =
      repeat(shift < 0 ? piece.bits >> -shift : piece.bits << shift, 2);
  uint32_t table = sum == DecodeOperand::imm(0) ? kLop3And : kLop3AndOr;
  if (byte < 0 || !isInByte(piece, byte))
    return sequence.lop3(
        sequence.rotate(word, (piece.origin - shift + 64) % 32), mask, sum,
        table);
  // Bytes 1 and 3, or 3 and 1, each with a byte of zeros.
  int picked =
      sequence.prmt(word, DecodeOperand::imm(0), byte == 8 ? 0x4341 : 0x4143);
  if (!isRemainder(index, form))
    return sequence.lop3(picked, mask, sum, table);
  for (size_t other : piecesOfWord[piece.word]) {
    if (other == index || !isInByte(pieces[other], byte))
      continue;
    int taken =
        emitPiece(sequence, block, other, toSigned(pieces[other].origin - byte),
                  form, DecodeOperand::imm(0));
    picked = sequence.fma(DecodeOperand::reg(taken), sequence.splat(-1),
                          DecodeOperand::reg(picked));
  }
  if (sum == DecodeOperand::imm(0))
    return picked;
  return sequence.scale(picked, 0, sum);
}

int PiecePlan::emit(Sequence &sequence, int block, int index, int scale) const {
  const RowForm &form = rows[period.getRow(index)];
  std::vector<int> shifts = chooseShifts(index, form);
  uint32_t magic = form.isMagic ? repeat(kMagicBits, 2) : 0;
  std::vector<Group> groups;
  // Pieces of one shift are OR'ed by the masks.
  for (size_t k = 0; k < shifts.size(); ++k) {
    auto same =
        std::find_if(groups.begin(), groups.end(), [&](const Group &group) {
          return group.shift == shifts[k];
        });
    bool isNew = same == groups.end();
    DecodeOperand sum =
        isNew ? DecodeOperand::imm(magic) : DecodeOperand::reg(same->reg);
    int reg = emitPiece(sequence, block, piecesOfSlot[index][k], shifts[k],
                        form, sum);
    if (isNew)
      groups.push_back({shifts[k], reg});
    else
      same->reg = reg;
  }
  return finish(sequence, homes, ending, form, groups, scale);
}
