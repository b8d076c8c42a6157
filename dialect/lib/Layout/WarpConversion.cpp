//===- WarpConversion.cpp - Layouts changed within warps ------------------===//
//
// 1. Items: the longest runs that both layouts keep together.
// 2. Demands: each item of the result that its thread does not hold gets an
//    owner in the warp, where there are several the one asked least so far.
// 3. Rounds, so that in each a lane offers one item and reads one. Four ways
//    are tried, and the one that costs least is taken:
//    - by places: a round for each pair of an item of the source and one of the
//      result. Registers are then known at compile time, and any number of
//      lanes may read one. Best where lanes only change places.
//    - by places, where lanes read their own item too: nothing is then chosen
//      between what came and what was there. Best where lanes have parts of
//      what all of them are to have.
//    - by distance: rounds in which a lane reads the one whose number differs
//      by a constant (shfl.bfly), which needs no arithmetic for the lane. Best
//      where a digit of the lane and one of the local index change places.
//    - by colours: demands are the edges of a graph from owners to readers.
//      With D the most edges of a lane, D colours do (König), found one edge
//      after the other by turning alternating paths around. The fewest rounds
//      where each item has one reader.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/WarpConversion.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <set>

using namespace lowlp;

static constexpr int none = WarpConversion::none;
static constexpr int64_t lanes = WarpConversion::warpThreads;

namespace {

/// A layout as a table of items, each named by the number of its first element
/// in row-major order.
struct Items {
  int64_t count;
  std::vector<int64_t> ids; // [thread][item]

  int64_t at(int64_t thread, int64_t item) const {
    return ids[thread * count + item];
  }
};

/// Reader `thread` needs for its item `target` item `offered` of `owner`, both
/// threads of one warp.
struct Demand {
  int64_t owner, thread;
  int offered, target;
};

using Rounds = std::vector<ShuffleRound>;

} // namespace

static std::vector<int64_t> elementNumbers(const Layout &layout) {
  std::vector<int64_t> index(layout.rank()), numbers;
  numbers.reserve(layout.numThreads() * layout.numLocals());
  for (int64_t t = 0; t < layout.numThreads(); ++t)
    for (int64_t i = 0; i < layout.numLocals(); ++i) {
      layout.evaluateInto(t, i, index.data());
      int64_t number = 0;
      for (int64_t dim = 0; dim < layout.rank(); ++dim)
        number = number * layout.shape()[dim] + index[dim];
      numbers.push_back(number);
    }
  return numbers;
}

/// Whether every aligned run of `size` elements of the result is one of the
/// source.
static bool keepsRuns(const std::vector<int64_t> &source,
                      const std::vector<int64_t> &result, int64_t size) {
  std::map<int64_t, size_t> runs; // the position of a run by its first element
  for (size_t at = 0; at < source.size(); at += size)
    runs.emplace(source[at], at);
  for (size_t at = 0; at < result.size(); at += size) {
    auto run = runs.find(result[at]);
    if (run == runs.end() ||
        !std::equal(result.begin() + at, result.begin() + at + size,
                    source.begin() + run->second))
      return false;
  }
  return true;
}

static Items makeItems(const std::vector<int64_t> &numbers, int64_t locals,
                       int64_t size) {
  Items items{locals / size, {}};
  for (size_t at = 0; at < numbers.size(); at += size)
    items.ids.push_back(numbers[at]);
  return items;
}

//===----------------------------------------------------------------------===//
// Demands
//===----------------------------------------------------------------------===//

/// Fills `plan.kept` for the threads of one warp, and appends its demands, also
/// of those which have the item themselves where `readsOwn` has true for the
/// item of the result. False where the warp lacks an item.
static bool addDemands(const Items &source, const Items &result, int64_t warp,
                       const std::vector<bool> &readsOwn, WarpConversion &plan,
                       std::vector<Demand> &demands) {
  struct Place {
    int64_t thread;
    int item;
  };
  std::map<int64_t, std::vector<Place>> holders;
  int64_t first = warp * lanes;
  for (int64_t t = first; t < first + lanes; ++t)
    for (int k = 0; k < source.count; ++k)
      holders[source.at(t, k)].push_back({t, k});
  std::vector<int64_t> load(lanes);
  for (int j = 0; j < result.count; ++j)
    for (int64_t t = first; t < first + lanes; ++t) {
      auto found = holders.find(result.at(t, j));
      if (found == holders.end())
        return false;
      const std::vector<Place> &places = found->second;
      auto own = std::find_if(places.begin(), places.end(),
                              [&](Place place) { return place.thread == t; });
      if (own != places.end() && readsOwn[j]) {
        demands.push_back({t, t, own->item, j});
        continue;
      }
      if (own != places.end()) {
        plan.kept[j][t] = own->item;
        continue;
      }
      const Place &owner = *std::min_element(
          places.begin(), places.end(), [&](Place a, Place b) {
            return load[a.thread - first] < load[b.thread - first];
          });
      ++load[owner.thread - first];
      demands.push_back({owner.thread, t, owner.item, j});
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

static ShuffleRound &getRound(Rounds &rounds, size_t number, size_t threads) {
  std::vector<int> empty(threads, none);
  while (rounds.size() <= number)
    rounds.push_back({empty, empty, empty});
  return rounds[number];
}

static void serve(ShuffleRound &round, const Demand &demand) {
  int &offered = round.offered[demand.owner];
  assert((offered == none || offered == demand.offered) &&
         round.target[demand.thread] == none && "the round is taken");
  offered = demand.offered;
  round.lane[demand.thread] = static_cast<int>(demand.owner % lanes);
  round.target[demand.thread] = demand.target;
}

static Rounds orderByPlaces(const std::vector<Demand> &demands,
                            size_t threads) {
  std::map<std::pair<int, int>, size_t> numbers;
  Rounds rounds;
  for (const Demand &demand : demands) {
    size_t number =
        numbers
            .emplace(std::pair(demand.target, demand.offered), numbers.size())
            .first->second;
    serve(getRound(rounds, number, threads), demand);
  }
  return rounds;
}

static Rounds orderByDistance(const std::vector<Demand> &demands,
                              size_t threads) {
  std::map<int64_t, std::vector<Demand>> byDistance;
  for (const Demand &demand : demands)
    byDistance[demand.owner ^ demand.thread].push_back(demand);
  Rounds rounds;
  for (const auto &[distance, group] : byDistance) {
    size_t first = rounds.size();
    std::vector<size_t> next(threads, first);
    for (const Demand &demand : group)
      serve(getRound(rounds, next[demand.thread]++, threads), demand);
  }
  return rounds;
}

namespace {

/// Colours the edges of a graph between owners and readers.
class EdgeColouring {
public:
  EdgeColouring(const std::vector<Demand> &demands, size_t threads)
      : demands(demands), colours(demands.size()) {
    std::vector<int64_t> offers(threads), reads(threads);
    for (const Demand &demand : demands)
      numColours = std::max(
          {numColours, ++offers[demand.owner], ++reads[demand.thread]});
    for (auto *side : {&edgeOfOwner, &edgeOfReader})
      side->assign(threads, std::vector<int>(numColours, none));
    for (size_t edge = 0; edge < demands.size(); ++edge)
      add(static_cast<int>(edge));
  }

  int64_t colourOf(size_t edge) const { return colours[edge]; }

private:
  using Side = std::vector<std::vector<int>>; // [thread][colour] -> edge

  static int64_t findFree(const std::vector<int> &edges) {
    return std::find(edges.begin(), edges.end(), none) - edges.begin();
  }

  void add(int edge) {
    const Demand &demand = demands[edge];
    int64_t a = findFree(edgeOfOwner[demand.owner]);
    int64_t b = findFree(edgeOfReader[demand.thread]);
    if (a != b)
      turn(demand.thread, a, b);
    setColour(edge, a);
  }

  void setColour(int edge, int64_t colour) {
    colours[edge] = colour;
    edgeOfOwner[demands[edge].owner][colour] = edge;
    edgeOfReader[demands[edge].thread][colour] = edge;
  }

  /// Exchanges colours `a` and `b` on the path that leaves `reader` with an
  /// edge of colour `a`; `b` is free there. The path cannot come to an owner
  /// at which `a` is free.
  void turn(int64_t reader, int64_t a, int64_t b) {
    std::vector<int> path;
    bool atReader = true;
    int64_t vertex = reader, colour = a;
    for (;;) {
      int edge = (atReader ? edgeOfReader : edgeOfOwner)[vertex][colour];
      if (edge == none)
        break;
      path.push_back(edge);
      vertex = atReader ? demands[edge].owner : demands[edge].thread;
      atReader = !atReader;
      colour = colour == a ? b : a;
    }
    for (int edge : path) {
      edgeOfOwner[demands[edge].owner][colours[edge]] = none;
      edgeOfReader[demands[edge].thread][colours[edge]] = none;
    }
    for (int edge : path)
      setColour(edge, colours[edge] == a ? b : a);
  }

  const std::vector<Demand> &demands;
  int64_t numColours = 0;
  std::vector<int64_t> colours;
  Side edgeOfOwner, edgeOfReader;
};

} // namespace

static Rounds orderByColours(const std::vector<Demand> &demands,
                             size_t threads) {
  EdgeColouring colouring(demands, threads);
  Rounds rounds;
  for (size_t edge = 0; edge < demands.size(); ++edge)
    serve(getRound(rounds, colouring.colourOf(edge), threads), demands[edge]);
  return rounds;
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

std::vector<uint32_t> lowlp::laneMasks(const std::vector<bool> &isSet) {
  std::vector<uint32_t> masks(isSet.size() / lanes);
  for (size_t t = 0; t < isSet.size(); ++t)
    masks[t / lanes] |= uint32_t(isSet[t]) << (t % lanes);
  bool areEqual = std::all_of(masks.begin(), masks.end(), [&](uint32_t mask) {
    return mask == masks.front();
  });
  if (areEqual)
    masks.resize(1);
  return masks;
}

/// The instructions that find out whether a lane is one of some: a shift and a
/// test, and where warps differ a choice between their masks.
static int64_t testCost(const std::vector<bool> &isSet) {
  return 2 + 2 * (static_cast<int64_t>(laneMasks(isSet).size()) - 1);
}

/// The instructions that choose between the values of a list, thread by thread.
static int64_t choiceCost(const std::vector<int> &choices) {
  std::set<int> values(choices.begin(), choices.end());
  values.erase(none);
  int64_t cost = 0;
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (value == values.begin())
      continue;
    std::vector<bool> isSet;
    for (int choice : choices)
      isSet.push_back(choice == *value);
    cost += 1 + testCost(isSet);
  }
  return cost;
}

std::optional<std::pair<int, int>>
lowlp::lanesByMask(const std::vector<int> &lane) {
  // Bits that all readers have as their own number has, and bits that all have
  // set.
  int kept = lanes - 1, set = lanes - 1;
  for (size_t t = 0; t < lane.size(); ++t)
    if (lane[t] != none) {
      kept &= ~(static_cast<int>(t % lanes) ^ lane[t]);
      set &= lane[t];
    }
  set &= ~kept;
  for (size_t t = 0; t < lane.size(); ++t)
    if (lane[t] != none &&
        lane[t] != ((static_cast<int>(t % lanes) & kept) | set))
      return std::nullopt;
  return std::pair(kept, set);
}

/// The instructions that compute the lane to read.
static int64_t laneCost(const std::vector<int> &lane) {
  std::set<int64_t> distances;
  for (size_t t = 0; t < lane.size(); ++t)
    if (lane[t] != none)
      distances.insert((int64_t(t) % lanes) ^ lane[t]);
  if (distances.size() == 1)
    return 0;
  if (lanesByMask(lane))
    return 2;
  int64_t cost = 0;
  for (int bit = 0; bit < 5; ++bit) {
    std::vector<bool> isSet;
    for (int from : lane)
      isSet.push_back(from != none && (from >> bit & 1));
    if (std::find(isSet.begin(), isSet.end(), true) != isSet.end())
      cost += 1 + testCost(isSet);
  }
  return cost;
}

int64_t WarpConversion::cost() const {
  int64_t total = 0;
  std::vector<int64_t> sources(kept.size());
  for (size_t j = 0; j < kept.size(); ++j) {
    total += choiceCost(kept[j]);
    sources[j] = std::any_of(kept[j].begin(), kept[j].end(),
                             [](int item) { return item != none; });
  }
  for (const ShuffleRound &round : rounds) {
    total += shuffleCost + choiceCost(round.offered) + laneCost(round.lane);
    std::set<int> targets(round.target.begin(), round.target.end());
    targets.erase(none);
    for (int target : targets) {
      if (sources[target]++ == 0)
        continue;
      std::vector<bool> isSet;
      for (int other : round.target)
        isSet.push_back(other == target);
      total += 1 + testCost(isSet);
    }
  }
  return total;
}

std::optional<WarpConversion> lowlp::planWarpConversion(const Layout &source,
                                                        const Layout &result,
                                                        int64_t elementBits) {
  assert(source.shape() == result.shape() &&
         source.numThreads() == result.numThreads() &&
         source.numThreads() % lanes == 0 && "no conversion");
  std::vector<int64_t> from = elementNumbers(source),
                       to = elementNumbers(result);
  int64_t size = 32 / elementBits;
  while (source.numLocals() % size || result.numLocals() % size ||
         !keepsRuns(from, to, size))
    --size;
  Items sourceItems = makeItems(from, source.numLocals(), size);
  Items resultItems = makeItems(to, result.numLocals(), size);

  auto threads = static_cast<size_t>(source.numThreads());
  WarpConversion plan;
  plan.elementsPerItem = size;
  // Fills `plan.kept`, and appends to `demands`; false where there is no plan.
  auto makeDemands = [&](const std::vector<bool> &readsOwn,
                         std::vector<Demand> &demands) {
    plan.kept.assign(resultItems.count, std::vector<int>(threads, none));
    for (int64_t warp = 0; warp < source.numThreads() / lanes; ++warp)
      if (!addDemands(sourceItems, resultItems, warp, readsOwn, plan, demands))
        return false;
    return true;
  };
  std::vector<bool> readsOwn(resultItems.count);
  std::vector<Demand> demands;
  if (!makeDemands(readsOwn, demands))
    return std::nullopt;
  if (demands.empty())
    return plan;
  std::optional<WarpConversion> best;
  auto take = [&](Rounds rounds) {
    WarpConversion candidate = plan;
    candidate.rounds = std::move(rounds);
    if (!best || candidate.cost() < best->cost())
      best = std::move(candidate);
  };
  for (auto *order : {orderByPlaces, orderByDistance, orderByColours})
    take(order(demands, threads));
  // Items of the result that some threads keep and others read.
  for (int64_t j = 0; j < resultItems.count; ++j) {
    auto numRead = std::count(plan.kept[j].begin(), plan.kept[j].end(), none);
    readsOwn[j] = numRead != 0 && numRead != static_cast<int64_t>(threads);
  }
  if (std::count(readsOwn.begin(), readsOwn.end(), true)) {
    demands.clear();
    makeDemands(readsOwn, demands);
    take(orderByPlaces(demands, threads));
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Dimensions across warps
//===----------------------------------------------------------------------===//

std::optional<Layout> lowlp::splitAcrossWarps(const Layout &layout,
                                              int64_t dim) {
  // For each mode how much of its extent lies within a warp: its inner part. A
  // digit with s threads below it and of extent e lies within when s * e
  // divides 32.
  std::vector<int64_t> within;
  for (const Mode &mode : layout.modes())
    within.push_back(mode.extent);
  int64_t below = 1;
  bool isSpread = false;
  for (auto digit = layout.threadDigits().rbegin();
       digit != layout.threadDigits().rend(); ++digit) {
    if (!digit->isReplica() && layout.modes()[digit->mode].dim == dim) {
      int64_t room = lanes % below == 0 ? lanes / below : 1;
      within[digit->mode] = std::gcd(digit->extent, room);
      isSpread = isSpread || within[digit->mode] != digit->extent;
    }
    below *= digit->extent;
  }
  if (!isSpread)
    return std::nullopt;

  std::vector<std::vector<int64_t>> extents(1 + layout.rank());
  std::vector<int> outer, inner; // the numbers of the parts of each mode
  for (size_t m = 0; m < within.size(); ++m) {
    const Mode &mode = layout.modes()[m];
    outer.push_back(static_cast<int>(extents[0].size()));
    if (mode.extent != within[m])
      extents[0].push_back(mode.extent / within[m]);
  }
  auto number = static_cast<int>(extents[0].size());
  for (size_t m = 0; m < within.size(); ++m) {
    extents[1 + layout.modes()[m].dim].push_back(within[m]);
    inner.push_back(number++);
  }
  std::vector<Digit> threads, locals;
  for (const Digit &digit : layout.threadDigits()) {
    if (digit.isReplica()) {
      threads.push_back(digit);
      continue;
    }
    if (within[digit.mode] != digit.extent)
      threads.push_back({outer[digit.mode], digit.extent / within[digit.mode]});
    threads.push_back({inner[digit.mode], within[digit.mode]});
  }
  for (const Digit &digit : layout.localDigits())
    locals.push_back({inner[digit.mode], digit.extent});
  return *Layout::fromModes(extents, threads, locals);
}
