// RUN: not lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups{arch=sm_1}))" 2>&1 | FileCheck %s

// CHECK: error: {{.*}}sm_1
lowlp.kernel @nothing() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  lowlp.return
}
