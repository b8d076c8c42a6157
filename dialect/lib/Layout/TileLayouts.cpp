//===- TileLayouts.cpp - layouts that memory and products like ------------===//
#include "lowlp/Layout/TileLayouts.h"

#include "lowlp/Layout/LayoutAlgebra.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace lowlp;

static constexpr int64_t kVectorBits = 128;
static constexpr int64_t kRegisterBits = 32;
static constexpr int64_t kThreadsPerWarp = 32;
/// The rows and columns of a product of a warp.
static constexpr int64_t kProductRows = 16, kProductColumns = 8;
/// Tiles of 16 rows of packed units, and their steps of 16 along K.
static constexpr std::pair<int64_t, int64_t> kUnits[] = {
    {1, 4}, {2, 4}, {4, 4}, {2, 2}, {4, 2}, {8, 2}, {4, 1}, {8, 1}, {16, 1}};

static int64_t product(const std::vector<int64_t> &numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t(1),
                         std::multiplies<>());
}

//===----------------------------------------------------------------------===//
// Along memory
//===----------------------------------------------------------------------===//

/// The threads along each dimension, for vectors along the last one.
static std::vector<int64_t> spread(std::vector<int64_t> extents, int64_t vector,
                                   int64_t numThreads) {
  extents.back() /= vector;
  std::vector<int64_t> threads(extents.size());
  for (size_t dim = extents.size(); dim-- > 0;) {
    threads[dim] = std::gcd(numThreads, extents[dim]);
    numThreads /= threads[dim];
  }
  return threads;
}

/// `coalesce` along the last dimension.
static Layout coalesceLast(const std::vector<int64_t> &extents, int64_t bits,
                           int64_t numThreads) {
  int64_t vector = 1;
  for (int64_t size = 2;
       size * bits <= kVectorBits && extents.back() % size == 0; size *= 2)
    if (product(spread(extents, size, numThreads)) >=
        product(spread(extents, vector, numThreads)))
      vector = size;
  std::vector<int64_t> threads = spread(extents, vector, numThreads);
  std::vector<int64_t> inner(extents.size(), 1), rest(extents);
  inner.back() = vector;
  for (size_t dim = 0; dim < extents.size(); ++dim)
    rest[dim] /= threads[dim] * inner[dim];
  std::vector<int64_t> copies(extents.size() + 1, 1);
  copies.front() = numThreads / product(threads);
  Layout replicas = *reduce(Layout::spatial(copies), {0});
  return replicas * Layout::local(rest) * Layout::spatial(threads) *
         Layout::local(inner);
}

Layout lowlp::coalesce(const std::vector<int64_t> &shape, int64_t bits,
                       int64_t numThreads, int64_t dim) {
  // The dimension goes last, and back to its place.
  std::vector<int64_t> extents(shape), back(shape.size());
  extents.erase(extents.begin() + dim);
  extents.push_back(shape[dim]);
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    back[d] = d < dim ? d : d - 1;
  back[dim] = static_cast<int64_t>(shape.size()) - 1;
  return *permute(coalesceLast(extents, bits, numThreads), back);
}

std::optional<Layout>
lowlp::coalesceWithinWarps(const std::vector<int64_t> &shape, int64_t bits,
                           int64_t numThreads, int64_t dim, int64_t within) {
  if (numThreads % kThreadsPerWarp != 0)
    return std::nullopt;
  int64_t left = numThreads / kThreadsPerWarp;
  std::vector<int64_t> warps(shape.size(), 1), part(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) == within)
      continue;
    warps[d] = std::gcd(left, shape[d]);
    part[d] /= warps[d];
    left /= warps[d];
  }
  if (left != 1)
    return std::nullopt;
  return Layout::spatial(warps) * coalesce(part, bits, kThreadsPerWarp, dim);
}

//===----------------------------------------------------------------------===//
// In products
//===----------------------------------------------------------------------===//

namespace {

/// The warps of a block as rows by columns of a product.
struct WarpGrid {
  int64_t rows, columns;
};

} // namespace

/// The grids that divide [m, n], best first.
static std::vector<WarpGrid> findGrids(int64_t m, int64_t n, int64_t warps,
                                       bool byWarpgroups) {
  std::vector<WarpGrid> grids;
  for (int64_t rows = 1; rows <= warps; ++rows)
    if (warps % rows == 0 && m % (kProductRows * rows) == 0 &&
        n % (kProductColumns * (warps / rows)) == 0)
      grids.push_back({rows, warps / rows});
  auto rank = [&](const WarpGrid &grid) {
    bool isOfWarpgroups = byWarpgroups && warps % 4 == 0 &&
                          grid.rows == m / kProductRows && grid.columns == 1;
    return std::tuple(!isOfWarpgroups, m / grid.rows + n / grid.columns,
                      -grid.rows);
  };
  std::sort(
      grids.begin(), grids.end(),
      [&](const WarpGrid &a, const WarpGrid &b) { return rank(a) < rank(b); });
  return grids;
}

/// Operand a of one product of a warp, of so many elements in a register.
static Layout getFragmentOfA(int64_t elements) {
  return Layout::columnLocal({2, 2}) * Layout::spatial({8, 4}) *
         Layout::local({1, elements});
}

std::vector<ProductFragments> lowlp::findFragments(int64_t m, int64_t n,
                                                   int64_t k, int64_t bits,
                                                   int64_t numThreads,
                                                   bool byWarpgroups) {
  std::vector<ProductFragments> found;
  int64_t elements = kRegisterBits / bits;
  int64_t steps = k / (kProductColumns * elements);
  for (auto [rows, columns] :
       findGrids(m, n, numThreads / kThreadsPerWarp, byWarpgroups)) {
    Layout grid = Layout::spatial({rows, 1, columns});
    int64_t tiles = m / kProductRows / rows;
    int64_t tilesOfB = n / kProductColumns / columns;
    Layout b = *reduce(grid, {0}) * Layout::local({steps, tilesOfB}) *
               Layout::local({2, 1}) * Layout::columnSpatial({4, 8}) *
               Layout::local({elements, 1});
    Layout c = Layout::spatial({rows, columns}) *
               Layout::local({tiles, tilesOfB}) * Layout::local({2, 1}) *
               Layout::spatial({8, 4}) * Layout::local({1, 2});
    for (auto [ofUnit, unitSteps] : kUnits) {
      if (tiles % ofUnit != 0 || (ofUnit > 1 && steps % unitSteps != 0))
        continue;
      Layout units = ofUnit == 1
                         ? Layout::local({tiles, steps})
                         : Layout::local({tiles / ofUnit, steps / unitSteps}) *
                               Layout::local({ofUnit, unitSteps});
      found.push_back(
          {*reduce(grid, {2}) * units * getFragmentOfA(elements), b, c});
    }
  }
  return found;
}

std::optional<Layout> lowlp::holdPackedUnits(int64_t rows, int64_t k,
                                             int64_t tilesOfUnit,
                                             int64_t stepsOfUnit,
                                             int64_t numThreads) {
  int64_t unitRows = kProductRows * tilesOfUnit, unitK = 16 * stepsOfUnit;
  if (rows % unitRows != 0 || k % unitK != 0)
    return std::nullopt;
  int64_t units = rows / unitRows, warps = numThreads / kThreadsPerWarp;
  int64_t sharing = std::gcd(units, warps);
  Layout grid = *reduce(Layout::spatial({sharing, 1, warps / sharing}), {2});
  return grid * Layout::local({units / sharing, k / unitK}) *
         Layout::local({tilesOfUnit, stepsOfUnit}) * getFragmentOfA(2);
}
