//===- Bindings.h - The parts of the module lowlp._layout -------*- C++ -*-===//

#ifndef LOWLP_PYTHON_BINDINGS_BINDINGS_H
#define LOWLP_PYTHON_BINDINGS_BINDINGS_H

#include "lowlp/Layout/Result.h"

#include <nanobind/nanobind.h>

namespace lowlp::python {

/// The value of a result; its error becomes Python's ValueError.
template <typename T> T unwrap(Result<T> result) {
  if (!result)
    throw nanobind::value_error(result.error().c_str());
  return *std::move(result);
}

/// Adds the class Layout and the functions that make layouts.
void populateLayout(nanobind::module_ &module);
/// Adds the class SharedLayout and its parser.
void populateSharedLayout(nanobind::module_ &module);
/// Adds what chooses layouts for tiles; after the layouts.
void populateTileLayouts(nanobind::module_ &module);
/// Adds the class ScalarFormat.
void populateNumeric(nanobind::module_ &module);
/// Adds the classes Codec and CodecField, after the scalar formats.
void populateCodec(nanobind::module_ &module);
/// Adds the class Placement and what packs by it; after the scalar formats.
void populateDecode(nanobind::module_ &module);

} // namespace lowlp::python

#endif // LOWLP_PYTHON_BINDINGS_BINDINGS_H
