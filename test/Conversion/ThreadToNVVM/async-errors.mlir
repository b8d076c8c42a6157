// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_80 --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @all(%g: !simt.ptr<global>, %i: i64, %parity: i32, %map: !simt.tensor_map) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (1)>} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      // expected-error @below {{sm_80}}
      simt.mbarrier_wait %s[%i] parity %parity : !simt.ptr<shared>
      // expected-error @below {{sm_80}}
      simt.mbarrier_arrive %s[%i] expects 4096 : !simt.ptr<shared>
      // expected-error @below {{sm_80}}
      simt.fence_async
      // expected-error @below {{cp.async.bulk into shared::cluster}}
      // expected-error @below {{mbarrier.arrive.expect_tx}}
      simt.copy_bulk %g[%i] to %s[%i] bytes 4096 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // expected-error @below {{cp.async.bulk into global}}
      simt.copy_bulk_to_global %s[%i] to %g[%i] bytes 16 : !simt.ptr<shared> to !simt.ptr<global>
      // expected-error @below {{cp.async.bulk.tensor}}
      simt.copy_tensor %map of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64]
        element_bytes 2 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      gpu.return
    }
  }
}
