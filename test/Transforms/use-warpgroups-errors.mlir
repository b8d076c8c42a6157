// RUN: not lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups))" 2>&1 | FileCheck %s
// RUN: not lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups{arch=sm_1}))" 2>&1 | FileCheck %s --check-prefix=ARCH

// ARCH: error: {{.*}}sm_1
// CHECK: error: lowlp.matrix_unit must be warp or warpgroup, but is block
lowlp.kernel @unit() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, lowlp.matrix_unit = "block"} {
  lowlp.return
}

// -----

// CHECK: error: lowlp.products_under_way must be 1 to 8, but is 9
lowlp.kernel @under_way() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, lowlp.matrix_unit = "warpgroup", lowlp.products_under_way = 9 : i64} {
  lowlp.return
}
