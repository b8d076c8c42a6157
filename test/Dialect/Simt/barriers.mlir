// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @mbarriers
func.func @mbarriers(%s: !simt.ptr<shared>, %i: i64, %parity: i32) {
  // CHECK: simt.mbarrier_init %{{.*}}[%{{.*}}] arrivals 128 : <shared>
  // GENERIC: "simt.mbarrier_init"(%{{.*}}, %{{.*}}) <{arrivals = 128 : i64}> : (!simt.ptr<shared>, i64) -> ()
  simt.mbarrier_init %s[%i] arrivals 128 : !simt.ptr<shared>
  // CHECK: simt.mbarrier_init %{{.*}}[%{{.*}}] arrivals 4 by_warps : <shared>
  simt.mbarrier_init %s[%i] arrivals 4 by_warps : !simt.ptr<shared>
  // CHECK: simt.fence_mbarrier_init
  simt.fence_mbarrier_init
  // CHECK: simt.mbarrier_arrive %{{.*}}[%{{.*}}] : <shared>
  simt.mbarrier_arrive %s[%i] : !simt.ptr<shared>
  // CHECK: simt.mbarrier_arrive %{{.*}}[%{{.*}}] by_warp loads_ended : <shared>
  // GENERIC: "simt.mbarrier_arrive"(%{{.*}}, %{{.*}}) <{by_warp, loads_ended}> : (!simt.ptr<shared>, i64) -> ()
  simt.mbarrier_arrive %s[%i] by_warp loads_ended : !simt.ptr<shared>
  // CHECK: simt.mbarrier_arrive %{{.*}}[%{{.*}}] expects 4096 : <shared>
  // GENERIC: "simt.mbarrier_arrive"(%{{.*}}, %{{.*}}) <{bytes = 4096 : i64}> : (!simt.ptr<shared>, i64) -> ()
  simt.mbarrier_arrive %s[%i] expects 4096 : !simt.ptr<shared>
  // CHECK: simt.mbarrier_wait %{{.*}}[%{{.*}}] parity %{{.*}} : <shared>
  simt.mbarrier_wait %s[%i] parity %parity : !simt.ptr<shared>
  // CHECK: simt.mbarrier_arrive %{{.*}}[%{{.*}}] by_warp : <shared>
  // GENERIC: "simt.mbarrier_arrive"(%{{.*}}, %{{.*}}) <{by_warp}> : (!simt.ptr<shared>, i64) -> ()
  simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
  // CHECK: simt.fence_async
  simt.fence_async
  // CHECK: simt.leave_barriers threads 96{{$}}
  simt.leave_barriers threads 96
  // CHECK: simt.barrier threads 256{{$}}
  simt.barrier threads 256
  // CHECK: simt.warpgroup_barrier{{$}}
  simt.warpgroup_barrier
  // CHECK: simt.set_registers 40{{$}}
  simt.set_registers 40
  // CHECK: simt.set_registers 232 takes{{$}}
  simt.set_registers 232 takes
  // CHECK: simt.wait_for_dependencies{{$}}
  simt.wait_for_dependencies
  // CHECK: simt.launch_dependents{{$}}
  simt.launch_dependents
  return
}

// CHECK-LABEL: func.func @bulk_copies
func.func @bulk_copies(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64) {
  // CHECK: simt.copy_bulk %{{.*}}[%{{.*}}] to %{{.*}}[%{{.*}}] bytes 4096 signals %{{.*}}[%{{.*}}] : <global> to <shared>, <shared>
  // GENERIC: "simt.copy_bulk"({{.*}}) <{bytes = 4096 : i64}>
  simt.copy_bulk %g[%i] to %s[%i] bytes 4096 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  // CHECK: simt.copy_bulk_to_global %{{.*}}[%{{.*}}] to %{{.*}}[%{{.*}}] bytes 16 : <shared> to <global>
  simt.copy_bulk_to_global %s[%i] to %g[%i] bytes 16 : !simt.ptr<shared> to !simt.ptr<global>
  // CHECK: simt.copy_bulk_commit
  simt.copy_bulk_commit
  // CHECK: simt.copy_bulk_wait 0
  simt.copy_bulk_wait 0
  // CHECK: simt.copy_bulk_wait 1 read
  simt.copy_bulk_wait 1 read
  return
}

// CHECK-LABEL: func.func @tensor_copies
// CHECK-SAME: %{{.*}}: !simt.tensor_map
func.func @tensor_copies(%map: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64) {
  // CHECK: simt.copy_tensor %{{.*}} of %{{.*}} extents[%{{.*}}, %{{.*}}] strides[%{{.*}}] at[%{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}] box [16, 64] element_bytes 2 swizzle 128 signals %{{.*}}[%{{.*}}]
  simt.copy_tensor %map of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64]
    element_bytes 2 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  // CHECK: strides[] at[%{{.*}}]
  simt.copy_tensor %map of %g extents [%i] strides [] at [%i] to %s[%i] box [256]
    element_bytes 4 swizzle 0 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}
