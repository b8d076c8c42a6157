// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-expand-exchanges,lowlp-plan-memory),lowlp-convert-to-thread,canonicalize,cse)" | FileCheck %s

!parts = !lowlp.tile<2x4x32xf32, local(2, 4, 1).spatial(1, 1, 32)>

// Two parts of four words: one vector goes to the other block, and one comes from it; memory is for one, and for the
// mbarrier.
// CHECK-LABEL: gpu.func @exchange
// CHECK-SAME: lowlp.schedule = #lowlp.schedule<cluster = 2>
// CHECK-SAME: lowlp.shared_bytes = 528
// CHECK: simt.mbarrier_init %[[OWN:.*]][%c512_i64] arrivals 1
// CHECK-NEXT: simt.fence_mbarrier_init
// CHECK-NEXT: simt.mbarrier_arrive %[[OWN]][%c512_i64] expects 512
// CHECK: simt.cluster_barrier
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = simt.map_shared %[[OWN]], %c0_i32 : <shared> -> <cluster>
// CHECK: simt.store_async %{{.*}}, %[[FIRST]][%{{.*}}] arrives[%c512_i64] : vector<4xi32>
// CHECK: scf.if
// CHECK: %[[SECOND:.*]] = simt.map_shared %[[OWN]], %c1_i32 : <shared> -> <cluster>
// CHECK: simt.store_async %{{.*}}, %[[SECOND]][%{{.*}}] arrives[%c512_i64] : vector<4xi32>
// CHECK: simt.mbarrier_wait %[[OWN]][%c512_i64] parity %c0_i32
// CHECK-COUNT-2: simt.load %[[OWN]][%{{.*}}] align 16 : <shared> -> vector<4xi32>
// CHECK-NOT: simt.load
// CHECK: gpu.return
lowlp.kernel @exchange(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (8)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [8, 2, 4, 32] : !lowlp.ptr<f32> -> !lowlp.global<8x2x4x32xf32>
  %t = lowlp.load_global %v[%b, %c0, %c0, %c0] : !lowlp.global<8x2x4x32xf32> -> !parts
  %r = lowlp.exchange_in_cluster %t : !parts
  lowlp.store_global %r, %v[%b, %c0, %c0, %c0] : !parts, !lowlp.global<8x2x4x32xf32>
  lowlp.return
}
