//===- Layout.cpp - The layout library for Python -------------------------===//
//
// One function here for each of the library; names, argument checks and
// documentation for users are in lowlp/layout.py.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/Layout.h"
#include "Bindings.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Layout/Reinterpret.h"
#include "lowlp/Layout/Scratch.h"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

namespace nb = nanobind;
using namespace lowlp;

using Ints = std::vector<int64_t>;
using Table = nb::ndarray<nb::numpy, int64_t, nb::ndim<3>>;
/// A digit as Python has it: (mode or None for a replica, extent).
using PythonDigit = std::tuple<std::optional<int>, int64_t>;

static Table tableOf(const Layout &layout) {
  size_t numThreads = layout.numThreads(), numLocals = layout.numLocals();
  size_t rank = layout.rank();
  auto data = std::make_unique<int64_t[]>(numThreads * numLocals * rank);
  int64_t *index = data.get();
  for (size_t t = 0; t < numThreads; ++t)
    for (size_t i = 0; i < numLocals; ++i, index += rank)
      layout.evaluateInto(t, i, index);
  nb::capsule owner(data.get(), [](void *pointer) noexcept {
    delete[] static_cast<int64_t *>(pointer);
  });
  return Table(data.release(), {numThreads, numLocals, rank}, owner);
}

static Ints evaluate(const Layout &layout, int64_t thread, int64_t local) {
  if (thread < 0 || thread >= layout.numThreads())
    throw nb::value_error(("there is no thread " + std::to_string(thread) +
                           "; allowed are 0 to " +
                           std::to_string(layout.numThreads() - 1))
                              .c_str());
  if (local < 0 || local >= layout.numLocals())
    throw nb::value_error(("there is no local index " + std::to_string(local) +
                           "; allowed are 0 to " +
                           std::to_string(layout.numLocals() - 1))
                              .c_str());
  return layout.evaluate(thread, local);
}

static std::vector<PythonDigit> toPython(const std::vector<Digit> &digits) {
  std::vector<PythonDigit> result;
  for (const Digit &digit : digits)
    result.emplace_back(digit.isReplica() ? std::nullopt
                                          : std::optional<int>(digit.mode),
                        digit.extent);
  return result;
}

static std::vector<Digit> fromPython(const std::vector<PythonDigit> &digits) {
  std::vector<Digit> result;
  for (const auto &[mode, extent] : digits) {
    if (mode && *mode < 0)
      throw nb::value_error("a mode is a number from 0 on, or None for a "
                            "replica");
    result.push_back({mode.value_or(Digit::replicaMode), extent});
  }
  return result;
}

static int64_t contiguousLocals(const Layout &layout, int64_t dim) {
  int64_t number = dim < 0 ? dim + layout.rank() : dim;
  if (number < 0 || number >= layout.rank())
    throw nb::value_error(("there is no dimension " + std::to_string(dim) +
                           "; the rank is " + std::to_string(layout.rank()))
                              .c_str());
  return layout.contiguousLocals(number);
}

/// The operations that make a layout from layouts.
static void defineAlgebra(nb::class_<Layout> &layout) {
  using python::unwrap;
  layout
      .def("compose", [](const Layout &f,
                         const Layout &g) { return unwrap(compose(f, g)); })
      .def("divide_right",
           [](const Layout &f, const Layout &g) {
             return unwrap(divideRight(f, g));
           })
      .def("divide_left",
           [](const Layout &f, const Layout &g) {
             return unwrap(divideLeft(f, g));
           })
      .def("reduce",
           [](const Layout &f, const Ints &dims, bool keepDims) {
             return unwrap(reduce(f, dims, keepDims));
           })
      .def("permute", [](const Layout &f,
                         const Ints &dims) { return unwrap(permute(f, dims)); })
      .def("reshape",
           [](const Layout &f, const Ints &shape) {
             return unwrap(reshape(f, shape));
           })
      .def("squeeze", [](const Layout &f,
                         const Ints &dims) { return unwrap(squeeze(f, dims)); })
      .def("unsqueeze",
           [](const Layout &f, const Ints &dims) {
             return unwrap(unsqueeze(f, dims));
           })
      .def("broadcast", [](const Layout &f,
                           int64_t rank) { return unwrap(broadcast(f, rank)); })
      .def("reinterpret",
           [](const Layout &f, int64_t fromBits, int64_t toBits) {
             return unwrap(reinterpret(f, fromBits, toBits));
           });
}

/// What a layout is and how it is written.
static void defineQueries(nb::class_<Layout> &layout) {
  using python::unwrap;
  layout.def_prop_ro("shape", &Layout::shape)
      .def_prop_ro("num_threads", &Layout::numThreads)
      .def_prop_ro("num_locals", &Layout::numLocals)
      .def_prop_ro("num_elements", &Layout::numElements)
      .def_prop_ro("has_replicas", &Layout::hasReplicas)
      .def_prop_ro("mode_extents", &Layout::modeExtents)
      .def_prop_ro("thread_digits",
                   [](const Layout &f) { return toPython(f.threadDigits()); })
      .def_prop_ro("local_digits",
                   [](const Layout &f) { return toPython(f.localDigits()); })
      .def("evaluate", evaluate)
      .def("table", tableOf)
      .def("contiguous_locals", contiguousLocals)
      .def("threads_holding",
           [](const Layout &f, const Ints &index) {
             std::vector<std::pair<int64_t, int64_t>> owners;
             for (const Owner &owner : unwrap(f.threadsHolding(index)))
               owners.emplace_back(owner.thread, owner.local);
             return owners;
           })
      .def("draw", [](const Layout &f) { return unwrap(drawText(f)); })
      .def("__str__", [](const Layout &f) { return str(f); })
      .def(nb::self == nb::self,
           nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", &Layout::hash);
}

void lowlp::python::populateLayout(nb::module_ &module) {
  nb::class_<Layout> layout(module, "Layout");
  defineQueries(layout);
  defineAlgebra(layout);

  auto definePrimitive = [&](const char *name, PrimitiveKind kind) {
    module.def(name, [kind](const Ints &shape) {
      return unwrap(Layout::primitive(kind, shape));
    });
  };
  definePrimitive("local", PrimitiveKind::Local);
  definePrimitive("spatial", PrimitiveKind::Spatial);
  definePrimitive("column_local", PrimitiveKind::ColumnLocal);
  definePrimitive("column_spatial", PrimitiveKind::ColumnSpatial);
  module.def("from_modes", [](const std::vector<Ints> &modeExtents,
                              const std::vector<PythonDigit> &threads,
                              const std::vector<PythonDigit> &locals) {
    return unwrap(Layout::fromModes(modeExtents, fromPython(threads),
                                    fromPython(locals)));
  });
  module.def("parse_layout",
             [](const std::string &text) { return unwrap(parseLayout(text)); });
  module.def("same_bits_per_thread", [](const Layout &a, int64_t bitsA,
                                        const Layout &b, int64_t bitsB) {
    if (bitsA < 1 || bitsB < 1)
      throw nb::value_error("an element has at least one bit");
    return sameBitsPerThread(a, bitsA, b, bitsB);
  });
  module.def("exchanged_bytes", [](const Layout &source, const Layout &result,
                                   int64_t bits) {
    if (bits < 1 || bits > 32)
      throw nb::value_error(
          ("an element has 1 to 32 bits; found " + std::to_string(bits))
              .c_str());
    if (source.shape() != result.shape())
      throw nb::value_error("both layouts must have the same shape");
    if (source.numThreads() != result.numThreads() ||
        source.numThreads() % 32 != 0)
      throw nb::value_error(
          ("both layouts must have the same threads, whole warps; found " +
           std::to_string(source.numThreads()) + " and " +
           std::to_string(result.numThreads()))
              .c_str());
    return planScratch(source, result, bits).sizeInBytes();
  });
}
