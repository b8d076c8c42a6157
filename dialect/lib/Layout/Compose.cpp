//===- Compose.cpp - Composition and division -----------------------------===//
//
// Composition puts lists end to end: the digits of the outer layout are the
// more significant ones of the thread index, of the local index and of every
// dimension.
//
// Division undoes that. The sizes of the divisor say where each list of the
// dividend would have been joined; the modes that cross a joint are split
// there, and the quotient is read off on its side of the joints. A quotient
// that exists is found in this way, because merging at the joints is all that
// composition does besides. Whether it exists is then decided by composing.
//
//===----------------------------------------------------------------------===//

#include "ModeLists.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include <algorithm>

using namespace lowlp;
using namespace lowlp::detail;

/// The lists of `layout` with dimensions of extent 1 prepended up to `rank`.
static ModeLists broadcastLists(const Layout &layout, int64_t rank) {
  ModeLists lists(layout);
  lists.dims.insert(lists.dims.begin(), rank - layout.rank(), {});
  return lists;
}

Result<Layout> lowlp::compose(const Layout &outer, const Layout &inner) {
  if (checkedProduct({outer.numThreads(), outer.numLocals(), inner.numThreads(),
                      inner.numLocals()}) < 0)
    return Error{"threads times locals must be at most 2**62; found " +
                 str(outer) + " composed with " + str(inner)};
  int64_t rank = std::max(outer.rank(), inner.rank());
  ModeLists result = broadcastLists(outer, rank);
  ModeLists tail = broadcastLists(inner, rank);

  int shift = static_cast<int>(result.extents.size());
  result.extents.insert(result.extents.end(), tail.extents.begin(),
                        tail.extents.end());
  for (int64_t dim = 0; dim < rank; ++dim)
    for (int mode : tail.dims[dim])
      result.dims[dim].push_back(mode + shift);
  auto append = [shift](std::vector<Digit> &to,
                        const std::vector<Digit> &digits) {
    for (Digit digit : digits) {
      if (!digit.isReplica())
        digit.mode += shift;
      to.push_back(digit);
    }
  };
  append(result.threads, tail.threads);
  append(result.locals, tail.locals);
  return std::move(result).build();
}

Layout lowlp::operator*(const Layout &outer, const Layout &inner) {
  return *compose(outer, inner);
}

namespace {
/// Where the lists of a layout are cut into an outer and an inner part: the
/// sizes of the inner part.
struct Cut {
  int64_t numThreads;
  int64_t numLocals;
  std::vector<int64_t> shape;
};

enum class Side { Outer, Inner };
} // namespace

/// The part of `layout` on one side of the cut, or an error when the lists
/// cannot be cut there or the parts of the lists do not hold the same modes.
static Result<Layout> takePart(const Layout &layout, const Cut &cut,
                               Side side) {
  const Error noPart{"the parts do not separate"};
  ModeLists lists(layout);
  int threadCut = lists.splitThreads(cut.numThreads);
  int localCut = lists.splitLocals(cut.numLocals);
  if (threadCut < 0 || localCut < 0)
    return noPart;
  std::vector<int> dimCuts;
  for (int64_t dim = 0; dim < layout.rank(); ++dim) {
    dimCuts.push_back(lists.splitDim(dim, cut.shape[dim]));
    if (dimCuts.back() < 0)
      return noPart;
  }
  // The dimensions' splits added digits, so the positions are asked for anew;
  // the boundaries exist already and nothing more is split.
  threadCut = lists.splitThreads(cut.numThreads);
  localCut = lists.splitLocals(cut.numLocals);

  bool outer = side == Side::Outer;
  auto keep = [outer](auto &list, int position) {
    if (outer)
      list.erase(list.begin() + position, list.end());
    else
      list.erase(list.begin(), list.begin() + position);
  };
  keep(lists.threads, threadCut);
  keep(lists.locals, localCut);
  std::vector<bool> kept(lists.extents.size(), false);
  size_t numKept = 0;
  for (int64_t dim = 0; dim < layout.rank(); ++dim) {
    keep(lists.dims[dim], dimCuts[dim]);
    numKept += lists.dims[dim].size();
    for (int mode : lists.dims[dim])
      kept[mode] = true;
  }
  for (const std::vector<Digit> *digits : {&lists.threads, &lists.locals})
    for (const Digit &digit : *digits) {
      if (digit.isReplica())
        continue;
      if (!kept[digit.mode])
        return noPart;
      --numKept;
    }
  if (numKept != 0)
    return noPart;
  return std::move(lists).build();
}

/// The message for a division that has no result.
static Error noQuotient(const Layout &f, const Layout &g, Side side) {
  std::string product = side == Side::Outer ? "h * g" : "g * h";
  return Error{"there is no layout h such that f is " + product +
               ", where f is " + str(f) + " and g is " + str(g)};
}

/// The h with f = h ∘ g (`side` Outer) or f = g ∘ h (`side` Inner).
static Result<Layout> divide(const Layout &f, const Layout &g, Side side) {
  if (g.rank() > f.rank())
    return Error{"the divisor " + str(g) + " has rank " +
                 std::to_string(g.rank()) + "; allowed is up to " +
                 std::to_string(f.rank()) + ", the rank of " + str(f)};
  Layout divisor = broadcastLists(g, f.rank()).build();
  Cut cut{divisor.numThreads(), divisor.numLocals(), divisor.shape()};
  bool divides = f.numThreads() % cut.numThreads == 0 &&
                 f.numLocals() % cut.numLocals == 0;
  for (int64_t dim = 0; dim < f.rank(); ++dim)
    divides &= f.shape()[dim] % cut.shape[dim] == 0;
  if (!divides)
    return noQuotient(f, g, side);
  if (side == Side::Inner) {
    cut.numThreads = f.numThreads() / cut.numThreads;
    cut.numLocals = f.numLocals() / cut.numLocals;
    for (int64_t dim = 0; dim < f.rank(); ++dim)
      cut.shape[dim] = f.shape()[dim] / cut.shape[dim];
  }

  Result<Layout> quotient = takePart(f, cut, side);
  if (!quotient)
    return noQuotient(f, g, side);
  Result<Layout> product = side == Side::Outer ? compose(*quotient, divisor)
                                               : compose(divisor, *quotient);
  if (!product || *product != f)
    return noQuotient(f, g, side);
  return quotient;
}

Result<Layout> lowlp::divideRight(const Layout &f, const Layout &g) {
  return divide(f, g, Side::Outer);
}

Result<Layout> lowlp::divideLeft(const Layout &f, const Layout &g) {
  return divide(f, g, Side::Inner);
}
