// A space in a type with a layout ended the process.
// RUN: not lowlp-opt %s 2>&1 | FileCheck %s
// CHECK: space-before-layout.mlir:5:33: error: '<' must follow the name at once

func.func private @f(%x: !lowlp.tile <32xf32, spatial(32)>)
