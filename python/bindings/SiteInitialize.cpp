//===- SiteInitialize.cpp - what importing the bindings registers ---------===//
//
// MLIR's Python package looks for modules of this name and calls
// `register_dialects` once; every context it makes then knows our dialects.
// Passes are registered with the process, when the module is loaded.
//
//===----------------------------------------------------------------------===//
#include "lowlp-c/Lowlp.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"

NB_MODULE(_site_initialize_0, m) {
  m.doc() = "registers the dialects and passes of lowlp";
  lowlpRegisterAllPasses();
  m.def("register_dialects", [](MlirDialectRegistry registry) {
    lowlpRegisterAllDialects(registry);
  });
}
