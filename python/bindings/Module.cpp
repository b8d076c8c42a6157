//===- Module.cpp - The module lowlp._layout ------------------------------===//

#include "Bindings.h"

NB_MODULE(_layout, module) {
  module.doc() = "The layout algebra, scalar formats and placements of lowlp.";
  // Types and layouts live in module globals until the interpreter has ended,
  // where nothing frees them any more; that is no leak to tell a user about.
  nanobind::set_leak_warnings(false);
  lowlp::python::populateLayout(module);
  lowlp::python::populateSharedLayout(module);
  lowlp::python::populateTileLayouts(module);
  lowlp::python::populateNumeric(module);
  lowlp::python::populateCodec(module);
  lowlp::python::populateDecode(module);
}
