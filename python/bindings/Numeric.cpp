//===- Numeric.cpp - The scalar formats for Python ------------------------===//
//
// Codes and values pass as arrays, so that the loop over them runs here; names
// and argument checks for users are in lowlp/dtypes.py.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "lowlp/Numeric/ScalarFormat.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>

namespace nb = nanobind;
using namespace lowlp;

using Values =
    nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

/// The values of all codes in order.
static std::vector<double> decodeTable(const ScalarFormat &format) {
  std::vector<double> values;
  for (int code = 0; format.hasCodes() && code < 1 << format.bits; ++code)
    values.push_back(format.decode(static_cast<uint8_t>(code)));
  return values;
}

static Codes encode(const ScalarFormat &format, Values values) {
  if (!format.hasCodes())
    throw nb::value_error((format.name() + " has no codes").c_str());
  size_t count = values.shape(0);
  auto data = std::make_unique<uint8_t[]>(count);
  for (size_t k = 0; k < count; ++k)
    data[k] = python::unwrap(format.encode(values.data()[k]));
  nb::capsule owner(data.get(), [](void *pointer) noexcept {
    delete[] static_cast<uint8_t *>(pointer);
  });
  return Codes(data.release(), {count}, owner);
}

void lowlp::python::populateNumeric(nb::module_ &module) {
  nb::class_<ScalarFormat>(module, "ScalarFormat")
      .def_static("parse",
                  [](const std::string &name) {
                    return unwrap(ScalarFormat::parse(name));
                  })
      .def_static("all", &ScalarFormat::all)
      .def_prop_ro("name", &ScalarFormat::name)
      .def_ro("bits", &ScalarFormat::bits)
      .def_ro("exponent_bits", &ScalarFormat::exponentBits)
      .def_ro("mantissa_bits", &ScalarFormat::mantissaBits)
      .def_prop_ro("min", &ScalarFormat::min)
      .def_prop_ro("max", &ScalarFormat::max)
      .def_prop_ro("is_float", &ScalarFormat::isFloat)
      .def_prop_ro("is_integer", &ScalarFormat::isInteger)
      .def_prop_ro("is_signed", &ScalarFormat::isSigned)
      .def_prop_ro("has_codes", &ScalarFormat::hasCodes)
      .def("decode_table", decodeTable)
      .def("encode", encode);
}
