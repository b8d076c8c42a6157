// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!row = !lowlp.tile<64xsi32, spatial(32).local(2)>
!halves = !lowlp.tile<64xf16, spatial(32).local(2)>
!one = !lowlp.tile<1xui32, reduce(spatial(32), dims=[0], keep_dims=True)>

// The first thread waits or signals; the barrier makes that hold for the block.
// CHECK-LABEL: gpu.func @semaphores
// CHECK-SAME: (%[[P:.*]]: !simt.ptr<global>, %{{.*}}: i32)
// CHECK-SAME: name = "locks", {{.*}}written
lowlp.kernel @semaphores(%p: !lowlp.ptr<si32> {lowlp.name = "locks"}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %i = lowlp.block_indices : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n] : !lowlp.ptr<si32> -> !lowlp.global<?xsi32>
  // CHECK-DAG: %[[THREAD:.*]] = gpu.thread_id x
  // CHECK-DAG: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %c0 : index
  // CHECK: scf.if %[[FIRST]] {
  // CHECK: simt.assert %{{.*}}, "the semaphore lies outside of the view"
  // CHECK: simt.acquire %[[WORD:.*]], %[[P]][%[[OFFSET:.*]]] : <global>
  // CHECK: }
  // CHECK-NEXT: gpu.barrier
  lowlp.semaphore_acquire %v[%i], %i : !lowlp.global<?xsi32>
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: scf.if %[[FIRST]] {
  // CHECK: simt.release add %[[WORD]], %[[P]][%[[OFFSET]]] : <global>
  lowlp.semaphore_release add %v[%i], %i : !lowlp.global<?xsi32>
  // CHECK: gpu.barrier
  // CHECK: simt.release store
  lowlp.semaphore_release %v[%i], %i : !lowlp.global<?xsi32>
  lowlp.return
}

// Signed elements are compared as such; what lies outside is not touched, and was zero.
// CHECK-LABEL: gpu.func @atomics
// CHECK-SAME: name = "arg0"{{.*}}written
lowlp.kernel @atomics(%p: !lowlp.ptr<si32>, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n] : !lowlp.ptr<si32> -> !lowlp.global<?xsi32>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<?xsi32> -> !row
  // CHECK: %[[OLD:.*]] = scf.if %[[INSIDE:.*]] -> (i32) {
  // CHECK: %[[WAS:.*]] = simt.atomic_rmw min_s %{{.*}}, %{{.*}}[%{{.*}}] : i32, <global>
  // CHECK: scf.yield %[[WAS]]
  // CHECK: } else {
  // CHECK: scf.yield %c0_i32
  // CHECK: simt.atomic_rmw min_s
  %old = lowlp.atomic_rmw min %t, %v[%c0] : !row, !lowlp.global<?xsi32> -> !row
  // CHECK: scf.if
  // CHECK: simt.atomic_rmw xor
  lowlp.atomic_rmw xor %old, %v[%c0] : !row, !lowlp.global<?xsi32>
  lowlp.return
}

// Neighbours at a multiple of 4 bytes are one pair; and of 32 threads that hold an element the first changes it.
// CHECK-LABEL: gpu.func @pairs
lowlp.kernel @pairs() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 1.0 : f16
  %one = arith.constant 1 : i32
  %s = lowlp.alloc_shared : !lowlp.shared<66xf16>
  %w = lowlp.alloc_shared : !lowlp.shared<1xui32>
  %t = lowlp.splat %z : f16 -> !halves
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : vector<2xf16>, <shared>
  lowlp.atomic_rmw add %t, %s[%c0] : !halves, !lowlp.shared<66xf16>
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : f16, <shared>
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : f16, <shared>
  lowlp.atomic_rmw add %t, %s[%c1] : !halves, !lowlp.shared<66xf16>
  // CHECK: arith.cmpi eq, %{{.*}}, %c0 : index
  // CHECK: simt.atomic_rmw max_u
  %u = lowlp.splat %one : i32 -> !one
  lowlp.atomic_rmw max %u, %w[%c0] : !one, !lowlp.shared<1xui32>
  lowlp.return
}

// What is zero lies in front of the pointer, the rest after it, each at a multiple of 256 bytes.
// CHECK-LABEL: gpu.func @workspace
// CHECK-SAME: (%[[P:.*]]: !simt.ptr<global>, %{{.*}}: i32, %[[W:.*]]: !simt.ptr<global>)
// CHECK-SAME: lowlp.parameters = [{align = 4 : i64, name = "arg0", type = !lowlp.ptr<f32>, written}, {name = "arg1", type = i32}]
// CHECK-SAME: lowlp.workspace = [
// CHECK-SAME: {element_bits = 32 : i64, name = "lowlp.alloc_global at {{[^"]*}}order.mlir:[[#@LINE+11]]:8", shape = affine_map{{[^}]*}}},
// CHECK-SAME: {element_bits = 32 : i64, name = {{[^}]*}}, shape = affine_map{{[^}]*}}, zeroed},
// CHECK-SAME: {element_bits = 6 : i64, name = {{[^}]*}}, shape = affine_map{{[^}]*}}},
// CHECK-SAME: {element_bits = 32 : i64, name = {{[^}]*}}, shape = affine_map{{[^}]*}}, zeroed}]
lowlp.kernel @workspace(%p: !lowlp.ptr<f32>, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  // CHECK-DAG: %[[A:.*]] = simt.offset %[[W]][%c0_i64] : <global>
  // CHECK-DAG: %[[B:.*]] = simt.offset %[[W]][%c-256_i64] : <global>
  // CHECK-DAG: %[[C:.*]] = simt.offset %[[W]][%c1024_i64] : <global>
  // CHECK-DAG: %[[SIZE:.*]] = arith.muli %{{.*}}, %c256 : index
  // CHECK-DAG: %[[BELOW:.*]] = arith.subi %c-256, %[[SIZE]] : index
  %a = lowlp.alloc_global shape affine_map<(m) -> (65, 3)> : !lowlp.ptr<f32>
  %b = lowlp.alloc_global shape affine_map<(m) -> (2)> zeroed : !lowlp.ptr<si32>
  %c = lowlp.alloc_global shape affine_map<(m) -> (32)> : !lowlp.ptr<si6>
  %d = lowlp.alloc_global shape affine_map<(m) -> (m ceildiv 16)> zeroed : !lowlp.ptr<si32>
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %a shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  %vb = lowlp.view_global %b shape [2] : !lowlp.ptr<si32> -> !lowlp.global<2xsi32>
  %vc = lowlp.view_global %c shape [32] : !lowlp.ptr<si6> -> !lowlp.global<32xsi6>
  %vd = lowlp.view_global %d shape [1] : !lowlp.ptr<si32> -> !lowlp.global<1xsi32>
  %vp = lowlp.view_global %p shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  // Aligned like the allocation, so two elements at once.
  // CHECK: simt.load %[[A]][%{{.*}}] align 8 : <global> -> vector<2xf32>
  %t = lowlp.load_global %va[%c0] : !lowlp.global<64xf32> -> !lowlp.tile<64xf32, spatial(32).local(2)>
  lowlp.store_global %t, %vp[%c0] : !lowlp.tile<64xf32, spatial(32).local(2)>, !lowlp.global<64xf32>
  %u = lowlp.load_global %vc[%c0] : !lowlp.global<32xsi6> -> !lowlp.tile<32xsi6, spatial(32)>
  lowlp.store_global %u, %vc[%c0] : !lowlp.tile<32xsi6, spatial(32)>, !lowlp.global<32xsi6>
  lowlp.semaphore_acquire %vb[%c0], %c0 : !lowlp.global<2xsi32>
  lowlp.semaphore_release %vd[%c0], %c0 : !lowlp.global<1xsi32>
  lowlp.return
}
