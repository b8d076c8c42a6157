// RUN: not lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-decode{offsets=both}))" 2>&1 | FileCheck %s --check-prefix=OFFSETS
// RUN: not lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-decode{arch=sm_1}))" 2>&1 | FileCheck %s --check-prefix=ARCH

// OFFSETS: error: offsets must be weights, accumulators or auto, but is both
// ARCH: error: {{.*}}sm_1
lowlp.kernel @options() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}
