//===- WarpConversion.h - Layouts changed within warps ----------*- C++ -*-===//
//
// How a tile comes from one layout to another without leaving its warps: each
// thread keeps what it has, and gets the rest in rounds. In a round every lane
// of a warp offers one item and reads that of one lane (PTX ISA, shfl.sync).
//
// Example: local(2, 1).spatial(1, 32) to spatial(2, 16).local(1, 2), 2 x 32
// elements in 32 threads, where (t, i) names value i of thread t:
//
//   (t, 0)   comes from   (2 t mod 32, t / 16)
//   (t, 1)   comes from   (2 t mod 32 + 1, t / 16)
//
// Lane 2 k holds an element for lane k and one for lane 16 + k, so that there
// are two rounds, in each of which a lane offers both of its values in turn.
//
// An item is a run of elements of up to 32 bits that both layouts keep
// together, so that four numbers of 8 bits travel as one.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_WARPCONVERSION_H
#define LOWLP_LAYOUT_WARPCONVERSION_H

#include "lowlp/Layout/Layout.h"

#include <optional>
#include <utility>
#include <vector>

namespace lowlp {

/// One exchange between the lanes of each warp. All lists have one entry a
/// thread.
struct ShuffleRound {
  /// The item of the source that the thread offers; `WarpConversion::none`
  /// where nobody reads it.
  std::vector<int> offered;
  /// The lane whose item it reads; `none` where it reads nothing.
  std::vector<int> lane;
  /// The item of the result that it reads it for; `none` where nothing.
  std::vector<int> target;
};

/// A conversion within warps.
struct WarpConversion {
  static constexpr int none = -1;
  static constexpr int64_t warpThreads = 32;

  /// Each item is that many neighbours in the order of locals.
  int64_t elementsPerItem = 1;
  /// For each item of the result and each thread the item of the source that
  /// it is, or `none` where it comes by a round.
  std::vector<std::vector<int>> kept;
  std::vector<ShuffleRound> rounds;

  /// Whether no element moves between threads.
  bool isWithinThreads() const { return rounds.empty(); }

  /// The instructions of a warp that it takes, weighted by how seldom an SM can
  /// begin one: 1 for arithmetic, `shuffleCost` for a shuffle (CUDA C++
  /// Programming Guide, "Arithmetic Instructions", table of throughputs).
  int64_t cost() const;
  static constexpr int64_t shuffleCost = 4;
};

/// The cheapest conversion within warps that is known; none where a warp lacks
/// an element that one of its threads needs. Requires: both layouts have the
/// same shape, and the same threads, a multiple of 32; 1 <= elementBits <= 32.
std::optional<WarpConversion> planWarpConversion(const Layout &source,
                                                 const Layout &result,
                                                 int64_t elementBits);

/// The same threads and locals seen with one more dimension, the first one,
/// which is the part of `dim` that is spread over warps; what is left of `dim`
/// lies within warps. None where nothing of it is spread over warps. Element
/// (p, ..., j, ...) of the result is element (..., k, ...), where p and j are
/// made of the digits of k. Requires: 0 <= dim < rank().
std::optional<Layout> splitAcrossWarps(const Layout &layout, int64_t dim);

/// Bits (kept, set) where every lane that reads one reads lane
/// (own number & kept) | set; none where there are no such bits. `lane` has an
/// entry for each thread, as `ShuffleRound` has.
std::optional<std::pair<int, int>> lanesByMask(const std::vector<int> &lane);

/// A fact about the lanes of each warp, as one bit for each lane: one word for
/// all warps, or one for each. `laneMasks({1, 0, 1, ...})` has bit 0 set, bit 1
/// clear, bit 2 set. Requires: a multiple of 32 threads.
std::vector<uint32_t> laneMasks(const std::vector<bool> &isSet);

} // namespace lowlp

#endif // LOWLP_LAYOUT_WARPCONVERSION_H
