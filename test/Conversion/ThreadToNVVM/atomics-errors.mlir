// RUN: not lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_80 2>&1 | FileCheck %s
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_90 -o /dev/null

gpu.module @kernels {
  gpu.func @bf16(%p: !simt.ptr<global>, %v: bf16, %i: i64) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    // CHECK: error: 'simt.atomic_rmw' op needs atom.add bf16x2, which sm_80 does not have; it is on sm_90
    %old = simt.atomic_rmw add %v, %p[%i] : bf16, !simt.ptr<global>
    gpu.return
  }
}
