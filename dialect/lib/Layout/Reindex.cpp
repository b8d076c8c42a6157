//===- Reindex.cpp - Reduction and other ways to index a tile -------------===//
//
// These operations keep the digit lists as they are and change to which
// dimension modes belong; only `reshape` splits modes, and only `reduce` takes
// some away.
//
//===----------------------------------------------------------------------===//

#include "ModeLists.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include <algorithm>
#include <numeric>

using namespace lowlp;
using namespace lowlp::detail;

/// Marks the dimensions that `dims` names, out of `rank`. Fails when one is out
/// of range or named twice.
static Result<std::vector<bool>> markDims(const std::vector<int64_t> &dims,
                                          int64_t rank) {
  std::vector<bool> marked(rank, false);
  for (int64_t dim : dims) {
    int64_t number = dim < 0 ? dim + rank : dim;
    if (number < 0 || number >= rank)
      return Error{"there is no dimension " + std::to_string(dim) +
                   "; allowed are " + std::to_string(-rank) + " to " +
                   std::to_string(rank - 1)};
    if (marked[number])
      return Error{"dimension " + std::to_string(dim) + " is named twice in " +
                   tupleText(dims)};
    marked[number] = true;
  }
  return marked;
}

/// Drops the marked dimensions, which have no modes; one stays if all are
/// marked.
static void dropDims(ModeLists &lists, const std::vector<bool> &marked) {
  std::vector<std::vector<int>> kept;
  for (size_t dim = 0; dim < lists.dims.size(); ++dim)
    if (!marked[dim])
      kept.push_back(lists.dims[dim]);
  if (kept.empty())
    kept.emplace_back();
  lists.dims = std::move(kept);
}

Result<Layout> lowlp::reduce(const Layout &layout,
                             const std::vector<int64_t> &dims, bool keepDims) {
  Result<std::vector<bool>> marked = markDims(dims, layout.rank());
  if (!marked)
    return Error{marked.error()};
  ModeLists lists(layout);
  auto isReduced = [&](const Digit &digit) {
    return !digit.isReplica() && (*marked)[layout.modes()[digit.mode].dim];
  };
  for (Digit &digit : lists.threads)
    if (isReduced(digit))
      digit = Digit::replica(digit.extent);
  lists.locals.erase(
      std::remove_if(lists.locals.begin(), lists.locals.end(), isReduced),
      lists.locals.end());
  for (int64_t dim = 0; dim < layout.rank(); ++dim)
    if ((*marked)[dim])
      lists.dims[dim].clear();
  if (!keepDims)
    dropDims(lists, *marked);
  return std::move(lists).build();
}

Result<Layout> lowlp::dropLocals(const Layout &layout, int64_t dim) {
  Result<std::vector<bool>> marked = markDims({dim}, layout.rank());
  if (!marked)
    return Error{marked.error()};
  ModeLists lists(layout);
  auto isDropped = [&](const Digit &digit) {
    return (*marked)[layout.modes()[digit.mode].dim];
  };
  for (const Digit &digit : lists.locals)
    if (isDropped(digit)) {
      std::vector<int> &modes = lists.dims[layout.modes()[digit.mode].dim];
      modes.erase(std::find(modes.begin(), modes.end(), digit.mode));
    }
  lists.locals.erase(
      std::remove_if(lists.locals.begin(), lists.locals.end(), isDropped),
      lists.locals.end());
  return std::move(lists).build();
}

std::optional<Layout> lowlp::findPart(const Layout &layout, int64_t numFixed) {
  for (const Digit &digit : layout.threadDigits())
    if (!digit.isReplica() && layout.modes()[digit.mode].dim < numFixed)
      return std::nullopt;
  std::vector<int64_t> fixed(numFixed);
  std::iota(fixed.begin(), fixed.end(), 0);
  return fixed.empty() ? layout : *reduce(layout, fixed);
}

std::vector<int64_t> lowlp::getPartLocals(const Layout &layout,
                                          const std::vector<int64_t> &part) {
  std::vector<int64_t> locals;
  for (int64_t i = 0; i < layout.numLocals(); ++i) {
    std::vector<int64_t> index = layout.evaluate(0, i);
    if (std::equal(part.begin(), part.end(), index.begin()))
      locals.push_back(i);
  }
  return locals;
}

Result<Layout> lowlp::permute(const Layout &layout,
                              const std::vector<int64_t> &dims) {
  int64_t rank = layout.rank();
  Result<std::vector<bool>> marked = markDims(dims, rank);
  if (!marked)
    return Error{marked.error()};
  if (static_cast<int64_t>(dims.size()) != rank)
    return Error{"a permutation names all " + std::to_string(rank) +
                 " dimensions once; found " + tupleText(dims)};
  ModeLists lists(layout);
  std::vector<std::vector<int>> permuted;
  permuted.reserve(dims.size());
  for (int64_t dim : dims)
    permuted.push_back(lists.dims[dim < 0 ? dim + rank : dim]);
  lists.dims = std::move(permuted);
  return std::move(lists).build();
}

Result<Layout> lowlp::reshape(const Layout &layout,
                              const std::vector<int64_t> &shape) {
  // The primitive checks the shape.
  Result<Layout> shaped = Layout::primitive(PrimitiveKind::Local, shape);
  if (!shaped)
    return Error{shaped.error()};
  if (shaped->numElements() != layout.numElements())
    return Error{"the shape " + tupleText(shape) + " has " +
                 std::to_string(shaped->numElements()) +
                 " elements; the layout's shape " + tupleText(layout.shape()) +
                 " has " + std::to_string(layout.numElements())};

  // In row-major order a tile is one dimension with all modes after each other.
  ModeLists lists(layout);
  std::vector<int> all;
  for (const std::vector<int> &modes : lists.dims)
    all.insert(all.end(), modes.begin(), modes.end());
  lists.dims = {all};
  for (size_t dim = shape.size(); dim-- > 1;) {
    int cut = lists.splitDim(0, shape[dim]);
    if (cut < 0)
      return Error{"the layout " + str(layout) + " of shape " +
                   tupleText(layout.shape()) + " has no reshape to " +
                   tupleText(shape) + ": dimension " + std::to_string(dim) +
                   " would end within a digit that it does not divide"};
    std::vector<int> &rest = lists.dims[0];
    std::vector<int> inner(rest.begin() + cut, rest.end());
    rest.erase(rest.begin() + cut, rest.end());
    lists.dims.insert(lists.dims.begin() + 1, inner);
  }
  return std::move(lists).build();
}

Result<Layout> lowlp::squeeze(const Layout &layout,
                              const std::vector<int64_t> &dims) {
  Result<std::vector<bool>> marked = markDims(dims, layout.rank());
  if (!marked)
    return Error{marked.error()};
  for (int64_t dim = 0; dim < layout.rank(); ++dim)
    if ((*marked)[dim] && layout.shape()[dim] != 1)
      return Error{"only dimensions of extent 1 can be dropped; dimension " +
                   std::to_string(dim) + " of the shape " +
                   tupleText(layout.shape()) + " has extent " +
                   std::to_string(layout.shape()[dim])};
  ModeLists lists(layout);
  dropDims(lists, *marked);
  return std::move(lists).build();
}

Result<Layout> lowlp::stackSlices(const Layout &layout, int64_t slices) {
  const std::vector<int64_t> &shape = layout.shape();
  if (shape.size() != 2 || slices < 1 || shape[1] % slices != 0)
    return Error{"slices are of K in [M, K], and divide it; found " +
                 std::to_string(slices) + " of " + tupleText(shape)};
  int64_t m = shape[0], k = shape[1] / slices;
  Result<Layout> cut = reshape(layout, {m, slices, k});
  if (!cut)
    return cut;
  return reshape(*permute(*cut, {1, 0, 2}), {slices * m, k});
}

Result<Layout> lowlp::unsqueeze(const Layout &layout,
                                const std::vector<int64_t> &dims) {
  int64_t rank = layout.rank() + static_cast<int64_t>(dims.size());
  Result<std::vector<bool>> marked = markDims(dims, rank);
  if (!marked)
    return Error{marked.error()};
  ModeLists lists(layout);
  std::vector<std::vector<int>> widened(rank);
  int64_t next = 0;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!(*marked)[dim])
      widened[dim] = lists.dims[next++];
  lists.dims = std::move(widened);
  return std::move(lists).build();
}

Result<Layout> lowlp::broadcast(const Layout &layout, int64_t rank) {
  if (rank < layout.rank())
    return Error{"a layout of rank " + std::to_string(layout.rank()) +
                 " cannot be broadcast to rank " + std::to_string(rank) +
                 "; allowed is its own rank or more"};
  // Far above any tile; it only keeps a mistyped rank from filling memory.
  constexpr int64_t maxRank = 64;
  if (rank > maxRank)
    return Error{"rank " + std::to_string(rank) + " is too large; allowed is " +
                 std::to_string(maxRank)};
  ModeLists lists(layout);
  lists.dims.insert(lists.dims.begin(), rank - layout.rank(), {});
  return std::move(lists).build();
}
