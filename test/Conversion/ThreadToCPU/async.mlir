// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu --split-input-file | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @all(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
    // CHECK: llvm.call @lowlpCpuTrackOrder(%[[THREAD]])
    // CHECK-NEXT: llvm.br
    gpu.func @all(%g: !simt.ptr<global>, %i: i64, %parity: i32, %map: !simt.tensor_map) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (1)>, lowlp.tensor_maps = [{}]} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuMbarrierInit(%[[THREAD]], %[[S:.*]], %[[I:.*]], %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr) -> ()
      simt.mbarrier_init %s[%i] arrivals 128 : !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuFenceMbarrierInit(%[[THREAD]])
      simt.fence_mbarrier_init
      // CHECK: llvm.call @lowlpCpuMbarrierArrive(%[[THREAD]], %[[S]], %[[I]], %{{.*}}, %{{.*}})
      simt.mbarrier_arrive %s[%i] expects 4096 : !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuMbarrierWait(%[[THREAD]], %[[S]], %[[I]], %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64, i32, !llvm.ptr) -> ()
      simt.mbarrier_wait %s[%i] parity %parity : !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuFenceAsync(%[[THREAD]])
      simt.fence_async
      // CHECK: llvm.call @lowlpCpuCopyBulk(%[[THREAD]], %{{.*}}, %[[I]], %[[S]], %[[I]], %[[S]], %[[I]], %{{.*}}, %{{.*}})
      simt.copy_bulk %g[%i] to %s[%i] bytes 4096 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuCopyBulkToGlobal(%[[THREAD]], %[[S]], %[[I]], %{{.*}}, %[[I]], %{{.*}}, %{{.*}})
      simt.copy_bulk_to_global %s[%i] to %g[%i] bytes 16 : !simt.ptr<shared> to !simt.ptr<global>
      // CHECK: llvm.call @lowlpCpuCopyBulkCommit(%[[THREAD]])
      simt.copy_bulk_commit
      // CHECK: llvm.call @lowlpCpuCopyBulkWait(%[[THREAD]], %{{.*}}, %{{.*}}) : (!llvm.ptr, i64, i32) -> ()
      simt.copy_bulk_wait 1 read
      // CHECK: llvm.call @lowlpCpuCopyTensor(%[[THREAD]], %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
      simt.copy_tensor %map of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64]
        element_bytes 2 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // The lanes of 4 warps, one by one.
      // CHECK: %[[LANES:.*]] = llvm.mlir.constant(128 : i64)
      // CHECK: llvm.call @lowlpCpuMbarrierInit(%[[THREAD]], %[[S]], %[[I]], %[[LANES]], %{{.*}})
      simt.mbarrier_init %s[%i] arrivals 4 by_warps : !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuMbarrierArrive(%[[THREAD]], %[[S]], %[[I]],
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      // One launch runs at a time: nothing to wait for.
      // CHECK-NOT: dependen
      simt.wait_for_dependencies
      simt.launch_dependents
      // CHECK: llvm.call @lowlpCpuLeaveBarriers(%[[THREAD]])
      simt.leave_barriers threads 96
      // CHECK: llvm.call @lowlpCpuBarrier(%[[THREAD]],
      simt.set_registers 40
      simt.barrier threads 256
      // CHECK: llvm.call @lowlpCpuWarpgroupBarrier(%[[THREAD]],
      simt.warpgroup_barrier
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @groups(
    // CHECK-NOT: lowlpCpuTrackOrder
    gpu.func @groups(%g: !simt.ptr<global>, %i: i64) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (1)>} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuCopyAsync(%{{.*}}, %{{.*}}, %[[I:.*]], %{{.*}}, %[[I]], %{{.*}}, %{{.*}}) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, i64, !llvm.ptr) -> ()
      simt.copy_async %g[%i] to %s[%i] bytes 8 : !simt.ptr<global> to !simt.ptr<shared>
      // CHECK: llvm.call @lowlpCpuCopyAsyncCommit(
      simt.copy_async_commit
      // CHECK: %[[N:.*]] = llvm.mlir.constant(1 : i64)
      // CHECK: llvm.call @lowlpCpuCopyAsyncWait(%{{.*}}, %[[N]])
      simt.copy_async_wait 1
      gpu.return
    }
  }
}
