//===- SharedLayout.cpp - Where elements lie in shared memory -------------===//

#include "lowlp/Layout/SharedLayout.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include <algorithm>
#include <cassert>
#include <numeric>

using namespace lowlp;

void Swizzle::apply(std::vector<int64_t> &index) const {
  int64_t decides = index[byDim] / byUnit % byExtent >> logStep;
  int64_t digit = index[dim] / unit % extent;
  int64_t changed = digit ^ (decides & (extent - 1));
  index[dim] += (changed - digit) * unit;
}

bool Swizzle::operator==(const Swizzle &other) const {
  return dim == other.dim && unit == other.unit && extent == other.extent &&
         byDim == other.byDim && byUnit == other.byUnit &&
         byExtent == other.byExtent && logStep == other.logStep;
}

Result<SharedLayout> SharedLayout::plain(const Layout &layout) {
  if (layout.numThreads() != 1)
    return Error{"the layout of a shared tile has 1 thread, but '" +
                 lowlp::str(layout) + "' has " +
                 std::to_string(layout.numThreads())};
  SharedLayout result;
  result.unswizzled = layout;
  return result;
}

/// The extent of `layout` along dimension `dim` of a tile of `rank` dimensions.
static int64_t extentAlong(const Layout &layout, int64_t dim, int64_t rank) {
  int64_t own = dim - (rank - layout.rank());
  return own < 0 ? 1 : layout.shape()[own];
}

/// The text of a swizzled layout; factors that change nothing are left out.
static std::string describe(const Layout &outer, const Layout &factor,
                            int64_t dim, int64_t logStep, const Layout &inner) {
  auto matters = [&](const Layout &layout, const Layout &other) {
    return layout.numLocals() > 1 ||
           layout.rank() > std::max(factor.rank(), other.rank());
  };
  std::string text;
  if (matters(outer, inner))
    text = str(outer) + ".";
  text += "swizzle(" + str(factor) + ", dim=" + std::to_string(dim);
  if (logStep)
    text += ", log_step=" + std::to_string(logStep);
  text += ")";
  if (inner.numLocals() > 1 ||
      inner.rank() > std::max(factor.rank(), outer.rank()))
    text += "." + str(inner);
  return text;
}

Result<SharedLayout> SharedLayout::swizzled(const Layout &outer,
                                            const Layout &factor, int64_t dim,
                                            int64_t logStep,
                                            const Layout &inner) {
  if (factor.rank() != 2)
    return Error{"the factor of a swizzle has 2 dimensions; found " +
                 lowlp::str(factor)};
  if (dim != 0 && dim != 1)
    return Error{"dim of a swizzle must be 0 or 1; found " +
                 std::to_string(dim)};
  if (logStep < 0 || logStep > 62)
    return Error{"log_step of a swizzle must be 0 to 62; found " +
                 std::to_string(logStep)};
  int64_t extent = factor.shape()[dim], byExtent = factor.shape()[1 - dim];
  if (extent & (extent - 1))
    return Error{"the extent along the swizzled dimension must be a power of "
                 "two; found " +
                 std::to_string(extent) + " in " + lowlp::str(factor)};
  Result<Layout> head = compose(outer, factor);
  if (!head)
    return Error{head.error()};
  Result<Layout> whole = compose(*head, inner);
  if (!whole)
    return Error{whole.error()};
  Result<SharedLayout> result = plain(*whole);
  if (!result || extent == 1 || (byExtent - 1) >> logStep == 0)
    return result;
  SharedLayout layout = *result;
  int64_t rank = layout.rank();
  int64_t swizzledDim = rank - 2 + dim, byDim = rank - 1 - dim;
  layout.change =
      Swizzle{swizzledDim, extentAlong(inner, swizzledDim, rank), extent,
              byDim,       extentAlong(inner, byDim, rank),       byExtent,
              logStep};
  layout.text = describe(outer, factor, dim, logStep, inner);
  return layout;
}

std::vector<int64_t> SharedLayout::evaluate(int64_t address) const {
  std::vector<int64_t> index = unswizzled.evaluate(0, address);
  if (change)
    change->apply(index);
  return index;
}

Result<int64_t> SharedLayout::addressOf(std::vector<int64_t> index) const {
  // Checks the index; elements swap places within the shape.
  Result<std::vector<Owner>> owners = unswizzled.threadsHolding(index);
  if (!owners)
    return Error{owners.error()};
  if (!change)
    return (*owners)[0].local;
  change->apply(index);
  return (*unswizzled.threadsHolding(index))[0].local;
}

int64_t SharedLayout::contiguousAddresses(int64_t dim) const {
  int64_t run = unswizzled.contiguousLocals(dim);
  if (!change)
    return run;
  // All elements of a run must have the same digits above it.
  if (change->dim == dim)
    run = std::gcd(run, change->unit);
  if (change->byDim == dim)
    run = std::gcd(run, change->byUnit);
  return run;
}

size_t SharedLayout::hash() const {
  size_t value = unswizzled.hash();
  if (!change)
    return value;
  for (int64_t number :
       {change->dim, change->unit, change->extent, change->byDim,
        change->byUnit, change->byExtent, change->logStep})
    value = (value ^ static_cast<size_t>(number)) * 1099511628211u;
  return value;
}

std::string SharedLayout::str() const {
  return change ? text : lowlp::str(unswizzled);
}
