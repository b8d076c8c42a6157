//===- SharedLayout.cpp - Layouts of shared memory for Python -------------===//
//
// Names, argument checks and documentation for users are in
// lowlp/shared_layouts.py.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/SharedLayout.h"
#include "Bindings.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace lowlp;

static std::vector<int64_t> evaluate(const SharedLayout &layout,
                                     int64_t address) {
  if (address < 0 || address >= layout.numElements())
    throw nb::value_error(("there is no address " + std::to_string(address) +
                           "; allowed are 0 to " +
                           std::to_string(layout.numElements() - 1))
                              .c_str());
  return layout.evaluate(address);
}

void lowlp::python::populateSharedLayout(nb::module_ &module) {
  nb::class_<SharedLayout>(module, "SharedLayout")
      .def_prop_ro("shape", &SharedLayout::shape)
      .def("evaluate", evaluate)
      .def("address_of",
           [](const SharedLayout &layout, const std::vector<int64_t> &index) {
             return unwrap(layout.addressOf(index));
           })
      .def("__str__", &SharedLayout::str)
      .def(nb::self == nb::self,
           nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", &SharedLayout::hash);
  module.def("parse_shared_layout", [](const std::string &text) {
    return unwrap(parseSharedLayout(text));
  });
}
