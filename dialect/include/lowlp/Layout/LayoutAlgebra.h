//===- LayoutAlgebra.h - Layouts made from layouts --------------*- C++ -*-===//
//
// Composition and its inverses (Tilus, section 4.2 and appendix A), reduction
// (appendix B), and the operations that change how a tile is indexed.
//
// A dimension is named by its number; negative numbers count from the end, -1
// being the last, wherever a list of dimensions is taken.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_LAYOUTALGEBRA_H
#define LOWLP_LAYOUT_LAYOUTALGEBRA_H

#include "lowlp/Layout/Layout.h"

#include <optional>

namespace lowlp {

/// h = outer ∘ inner: a tile of `outer`'s shape, each element of which is a
/// tile held as `inner` says,
///
///   h(t, i) = outer(t / T, i / m) * S + inner(t % T, i % m)
///
/// with T threads, m locals and shape S of `inner` (Tilus, definition 4). The
/// layout of lower rank is broadcast first (definition 5). Fails when the
/// result would be larger than `Layout::maxSize`.
Result<Layout> compose(const Layout &outer, const Layout &inner);

/// `compose` for layouts that are known to fit. Requires: the result is at most
/// `Layout::maxSize`.
Layout operator*(const Layout &outer, const Layout &inner);

/// The h with f = h ∘ g, written f / g (Tilus, definition 6). It has the rank
/// of f and is unique. Fails when there is none.
Result<Layout> divideRight(const Layout &f, const Layout &g);

/// The h with f = g ∘ h. It has the rank of f and is unique. Fails when there
/// is none.
Result<Layout> divideLeft(const Layout &f, const Layout &g);

/// The layout of a tile reduced over `dims` (Tilus, appendix B): a thread keeps
/// one copy of the elements that fall together, and threads that fall together
/// keep a copy each. The dimensions go away, or stay with extent 1 when
/// `keepDims`; when all go away one of extent 1 stays, since a layout has at
/// least one dimension. Fails when a dimension is out of range or named twice.
Result<Layout> reduce(const Layout &layout, const std::vector<int64_t> &dims,
                      bool keepDims = false);

/// The layout of a tile in which each thread has kept one of the elements that
/// it holds along `dim`: the dimension is as long as threads divide it. Fails
/// when it is out of range.
Result<Layout> dropLocals(const Layout &layout, int64_t dim);

/// How the elements with the same first `numFixed` indices are held, whichever
/// these are, if every thread holds such elements for all of them; nothing
/// else. Requires: `numFixed` is less than the rank.
std::optional<Layout> findPart(const Layout &layout, int64_t numFixed);

/// The local indices of the elements whose first indices are `part`, in the
/// order of the part's local index. Requires: there is such a part.
std::vector<int64_t> getPartLocals(const Layout &layout,
                                   const std::vector<int64_t> &part);

/// Dimension k of the result is dimension `dims[k]` of the layout, as NumPy's
/// transpose. Fails unless `dims` names every dimension once.
Result<Layout> permute(const Layout &layout, const std::vector<int64_t> &dims);

/// The layout of the same elements, in row-major order, in a tile of another
/// shape. Fails when the number of elements differs, or when a mode would have
/// to be split where its extent does not divide: the result would then not be
/// a layout.
Result<Layout> reshape(const Layout &layout, const std::vector<int64_t> &shape);

/// The same elements of [M, K] in slices of K, one above the other: [S M, K /
/// S], as accumulators by slices have their rows. Fails where K does not
/// divide, or the result would not be a layout.
Result<Layout> stackSlices(const Layout &layout, int64_t slices);

/// Drops dimensions of extent 1; when all are dropped one stays. Fails when a
/// dimension is out of range, named twice, or longer than 1.
Result<Layout> squeeze(const Layout &layout, const std::vector<int64_t> &dims);

/// Adds dimensions of extent 1; `dims` are their numbers in the result, as in
/// NumPy's expand_dims. Fails when one is out of range or named twice.
Result<Layout> unsqueeze(const Layout &layout,
                         const std::vector<int64_t> &dims);

/// For each local index of `result` the local index at which every thread holds
/// the same element in `source`, a tile that is repeated along its dimensions
/// of extent 1 and along leading ones that it lacks. Fails unless both have the
/// same threads, the extents of `source` from the last on are those of `result`
/// or 1, and each thread holds what it needs, at one place in all threads.
Result<std::vector<int64_t>> broadcastLocals(const Layout &source,
                                             const Layout &result);

/// Prepends dimensions of extent 1 up to `rank` (Tilus, definition 5). Fails
/// when the layout has more already.
Result<Layout> broadcast(const Layout &layout, int64_t rank);

} // namespace lowlp

#endif // LOWLP_LAYOUT_LAYOUTALGEBRA_H
