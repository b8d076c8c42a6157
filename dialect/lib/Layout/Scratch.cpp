//===- Scratch.cpp - Layouts changed through shared memory ----------------===//
//
// Every dimension is tried as the last one, with padding of 0, 4, 8 and 16
// bytes; the passes of the banks are counted for each, and the one that costs
// least is taken, the first of equals.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/Scratch.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/WarpConversion.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

using namespace lowlp;

static constexpr int64_t lanes = WarpConversion::warpThreads;

// In units of WarpConversion::cost, for a warp. A barrier is mostly a wait, and
// so a guess; there are two, one of them often shared with others.
static constexpr int64_t barrierCost = 20;
static constexpr int64_t addressCost = 2;
/// An element made a byte, or made of one, by way of f32.
static constexpr int64_t widenCost = 6;

int64_t Scratch::sizeInBytes() const {
  int64_t bits = std::accumulate(shape.begin(), shape.end(), elementBits,
                                 std::multiplies<>());
  return (bits + 7) / 8;
}

int64_t lowlp::accessWidth(int64_t run, int64_t elementBits) {
  for (int64_t v = std::min<int64_t>(run, 128); v > 1; --v) {
    int64_t bits = v * elementBits;
    bool isPowerOf2 = (bits & (bits - 1)) == 0;
    if (run % v == 0 && bits >= 8 && bits <= 128 && isPowerOf2)
      return v;
  }
  return 1;
}

/// The passes of one part of a request, which touches these bytes.
static int64_t passesOf(std::vector<int64_t> &words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int64_t, 32> wordsInBank = {};
  int64_t passes = 0;
  for (int64_t word : words)
    passes = std::max(passes, ++wordsInBank[word % 32]);
  words.clear();
  return passes;
}

/// Whether all digits of the thread that are replicas are 0.
static std::vector<bool> firstOwners(const Layout &layout) {
  std::vector<bool> isFirst(layout.numThreads());
  for (int64_t t = 0; t < layout.numThreads(); ++t) {
    int64_t rest = t;
    bool first = true;
    for (auto digit = layout.threadDigits().rbegin();
         digit != layout.threadDigits().rend(); ++digit) {
      first = first && !(digit->isReplica() && rest % digit->extent != 0);
      rest /= digit->extent;
    }
    isFirst[t] = first;
  }
  return isFirst;
}

int64_t lowlp::countBankPasses(const Layout &layout,
                               const std::vector<int64_t> &shape,
                               int64_t elementBits, int64_t width,
                               bool onlyFirst) {
  std::vector<bool> isFirst = firstOwners(layout);
  int64_t bytes = std::max<int64_t>(1, width * elementBits / 8);
  int64_t lanesPerPart = bytes > 8 ? 8 : bytes > 4 ? 16 : lanes;
  std::vector<int64_t> index(shape.size()), words;
  int64_t passes = 0;
  for (int64_t i = 0; i < layout.numLocals(); i += width)
    for (int64_t t = 0; t < layout.numThreads(); ++t) {
      if (!onlyFirst || isFirst[t]) {
        layout.evaluateInto(t, i, index.data());
        int64_t element = 0;
        for (size_t dim = 0; dim < shape.size(); ++dim)
          element = element * shape[dim] + index[dim];
        int64_t byte = element * elementBits / 8;
        for (int64_t word = byte / 4; word <= (byte + bytes - 1) / 4; ++word)
          words.push_back(word);
      }
      if ((t + 1) % lanesPerPart == 0)
        passes += passesOf(words);
    }
  return passes;
}

/// `order` and `shape` of `scratch` are set; finds the rest. None where
/// elements of that width would share bytes.
static std::optional<Scratch> complete(Scratch scratch, const Layout &source,
                                       const Layout &result) {
  Layout from = *permute(source, scratch.order),
         to = *permute(result, scratch.order);
  int64_t last = from.rank() - 1, bits = scratch.elementBits;
  int64_t rowRun = scratch.shape.back();
  int64_t storeWidth =
      accessWidth(std::gcd(from.contiguousLocals(last), rowRun), bits);
  int64_t loadWidth =
      accessWidth(std::gcd(to.contiguousLocals(last), rowRun), bits);
  if (storeWidth * bits % 8 != 0 || loadWidth * bits % 8 != 0)
    return std::nullopt;
  scratch.storePasses =
      countBankPasses(from, scratch.shape, bits, storeWidth, true);
  scratch.loadPasses =
      countBankPasses(to, scratch.shape, bits, loadWidth, false);
  int64_t warps = source.numThreads() / lanes;
  int64_t passes =
      (scratch.storePasses + scratch.loadPasses + warps - 1) / warps;
  int64_t accesses =
      source.numLocals() / storeWidth + result.numLocals() / loadWidth;
  scratch.cost = 2 * barrierCost + passes * WarpConversion::shuffleCost +
                 accesses * addressCost;
  return scratch;
}

Scratch lowlp::planScratch(const Layout &source, const Layout &result,
                           int64_t elementBits) {
  std::optional<Scratch> best;
  int64_t rank = source.rank();
  for (int64_t bits : {elementBits, std::max<int64_t>(8, elementBits)})
    for (int64_t dim = rank - 1; dim >= 0; --dim)
      for (int64_t padBits : {0, 32, 64, 128}) {
        if (padBits % bits != 0)
          continue;
        Scratch scratch = {};
        scratch.elementBits = bits;
        for (int64_t k = 0; k < rank; ++k)
          if (k != dim)
            scratch.order.push_back(k);
        scratch.order.push_back(dim);
        for (int64_t k : scratch.order)
          scratch.shape.push_back(source.shape()[k]);
        scratch.shape.back() += padBits / bits;
        std::optional<Scratch> candidate = complete(scratch, source, result);
        if (!candidate)
          continue;
        if (bits != elementBits)
          candidate->cost +=
              widenCost * (source.numLocals() + result.numLocals());
        if (!best || candidate->cost < best->cost)
          best = std::move(candidate);
      }
  return *best;
}
