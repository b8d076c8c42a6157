//===- TileLayouts.cpp - layouts that memory and products like ------------===//
#include "Bindings.h"

#include "lowlp/Layout/TileLayouts.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

namespace nb = nanobind;
using namespace lowlp;

/// Every layout of such a tile must be one that exists, replicas included.
static void verifySize(std::vector<int64_t> shape, int64_t numThreads) {
  shape.push_back(numThreads);
  python::unwrap(Layout::primitive(PrimitiveKind::Local, shape));
}

void lowlp::python::populateTileLayouts(nb::module_ &module) {
  module.def(
      "coalesce",
      [](const std::vector<int64_t> &shape, int64_t bits, int64_t numThreads,
         int64_t dim) {
        verifySize(shape, numThreads);
        auto rank = static_cast<int64_t>(shape.size());
        if (dim < -rank || dim >= rank)
          throw nb::value_error("there is no such dimension");
        return coalesce(shape, bits, numThreads, dim < 0 ? dim + rank : dim);
      },
      nb::arg("shape"), nb::arg("bits"), nb::arg("num_threads"),
      nb::arg("dim"));
  module.def(
      "find_fragments",
      [](int64_t m, int64_t n, int64_t k, int64_t bits, int64_t numThreads,
         bool byWarpgroups) {
        std::vector<std::tuple<Layout, Layout, Layout>> found;
        for (const ProductFragments &fragments :
             findFragments(m, n, k, bits, numThreads, byWarpgroups))
          found.emplace_back(fragments.a, fragments.b, fragments.c);
        return found;
      },
      nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("bits"),
      nb::arg("num_threads"), nb::arg("by_warpgroups"));
  module.def(
      "hold_packed_units",
      [](int64_t rows, int64_t k, int64_t tilesOfUnit, int64_t stepsOfUnit,
         int64_t numThreads) {
        verifySize({rows, k}, numThreads);
        return holdPackedUnits(rows, k, tilesOfUnit, stepsOfUnit, numThreads);
      },
      nb::arg("rows"), nb::arg("k"), nb::arg("tiles_of_unit"),
      nb::arg("steps_of_unit"), nb::arg("num_threads"));
}
