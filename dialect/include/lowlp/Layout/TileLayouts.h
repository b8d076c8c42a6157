//===- TileLayouts.h - layouts that memory and products like ----*- C++ -*-===//
//
// How a tile is best held by which nothing is known but its use. Front ends
// give such layouts to tiles that their users leave without one, and
// `lowlp-infer-layouts` chooses among them.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LAYOUT_TILELAYOUTS_H
#define LOWLP_LAYOUT_TILELAYOUTS_H

#include "lowlp/Layout/Layout.h"

#include <optional>

namespace lowlp {

/// Consecutive threads hold consecutive vectors of up to 16 bytes along `dim`,
/// then along the dimensions before. A tile that has fewer elements than there
/// are threads, or extents that share no factors with their number, is held
/// several times. Of all vectors that keep most threads busy the longest is
/// taken. Requires: a valid shape, bits and threads of at least 1,
/// 0 <= dim < rank.
Layout coalesce(const std::vector<int64_t> &shape, int64_t bits,
                int64_t numThreads, int64_t dim);

/// The same, but with the warps along the other dimensions than `within`, so
/// that what is reduced along that one stays within a warp. None where the
/// extents of those do not share all factors of the number of warps.
std::optional<Layout> coalesceWithinWarps(const std::vector<int64_t> &shape,
                                          int64_t bits, int64_t numThreads,
                                          int64_t dim, int64_t within);

/// How `lowlp.dot` may hold its operands and its result, which is held as c.
struct ProductFragments {
  Layout a, b, c;
};

/// The ways to share a product [m, k] x [k, n] of elements of `bits` bits among
/// warps, best first; none where no grid of the warps divides it.
///
/// The warps are a grid of rows by columns; each makes its part of the
/// accumulators, with all of K (PTX ISA, "Matrix Fragments for mma.m16n8k16").
/// The best grid is one in which a warp needs the fewest rows of a and columns
/// of b; `byWarpgroups` one in which each warp has 16 rows, as `lowlp.wgmma`
/// demands. For each grid a may also be held in the order of packed units.
std::vector<ProductFragments> findFragments(int64_t m, int64_t n, int64_t k,
                                            int64_t bits, int64_t numThreads,
                                            bool byWarpgroups);

/// How operand a of `lowlp.dot` is taken from packed units of `tilesOfUnit`
/// tiles of 16 rows by `stepsOfUnit` steps of 16 along K; none if rows and k
/// are no whole units. The warps share the rows, and hold them several times
/// where there are more warps than units.
std::optional<Layout> holdPackedUnits(int64_t rows, int64_t k,
                                      int64_t tilesOfUnit, int64_t stepsOfUnit,
                                      int64_t numThreads);

} // namespace lowlp

#endif // LOWLP_LAYOUT_TILELAYOUTS_H
