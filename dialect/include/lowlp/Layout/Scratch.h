//===- Scratch.h - Layouts changed through shared memory --------*- C++ -*-===//
//
// Where a tile lies in shared memory on its way from one layout to another:
// row-major, its dimensions in some order, and with some elements of padding
// after every row. A tile of 32 x 32 f32 of which a warp stores a row and
// loads a column at a time gets rows of 36 elements, so that a column, 4
// elements of each row at once, touches all banks.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_SCRATCH_H
#define LOWLP_LAYOUT_SCRATCH_H

#include "lowlp/Layout/Layout.h"

namespace lowlp {

/// Where a tile lies, and what it costs to go by it.
struct Scratch {
  /// Dimension k of the scratch is dimension `order[k]` of the tile.
  std::vector<int64_t> order;
  /// The extents of the scratch: those of the tile, in that order, the last one
  /// with the padding.
  std::vector<int64_t> shape;
  /// The bits of an element there: 8 for one of fewer bits that could not be
  /// moved in whole bytes, else as in the tile.
  int64_t elementBits;
  /// How often the banks are passed by all stores, and by all loads, of a
  /// block: see `countBankPasses`.
  int64_t storePasses, loadPasses;
  /// Instructions of a warp, weighted as `WarpConversion::cost` says; the pass
  /// of a warp counts as a shuffle does.
  int64_t cost;

  int64_t sizeInBytes() const;
};

/// The scratch that costs least. Requires: both layouts have the same shape and
/// the same threads, a multiple of 32; 1 <= elementBits <= 32.
Scratch planScratch(const Layout &source, const Layout &result,
                    int64_t elementBits);

/// How many elements one access of shared memory may move: `run` neighbours lie
/// side by side in both the thread and the memory, at a multiple of `run`. The
/// largest divisor of `run` that fills 1, 2, 4, 8 or 16 bytes, or 1.
int64_t accessWidth(int64_t run, int64_t elementBits);

/// How often the 32 banks of 4 bytes are passed when every thread accesses its
/// elements of a row-major array of extents `shape`, `width` elements at once:
/// by accesses of up to 4 bytes for a warp at a time, by those of 8 for half of
/// it, of 16 for a quarter; each as often as the most different words in one
/// bank say. With `onlyFirst` only the first of the threads that hold an
/// element takes part. Requires: `layout` has the rank of `shape` and is
/// nowhere larger.
int64_t countBankPasses(const Layout &layout, const std::vector<int64_t> &shape,
                        int64_t elementBits, int64_t width, bool onlyFirst);

} // namespace lowlp

#endif // LOWLP_LAYOUT_SCRATCH_H
