// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-expand-clusters))" | FileCheck %s

!parts = !lowlp.tile<4x32xf32, local(4, 1).spatial(1, 32)>

// CHECK-LABEL: lowlp.kernel @exchange
// CHECK-NOT: schedule
// CHECK: %[[BLOCK:.*]] = lowlp.block_indices
// CHECK: %[[NUMBER:.*]] = arith.remui %[[BLOCK]], %c4
// CHECK: %[[FIRST:.*]] = arith.subi %[[BLOCK]], %[[NUMBER]]
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %c4
// CHECK: %[[P:.*]] = lowlp.alloc_global shape affine_map<(d0) -> (d0 * 4, 4, 32)> : !lowlp.ptr<f32>
// CHECK: %[[GIVEN:.*]] = lowlp.view_global %[[P]] shape [4, %[[END]], 32] strides [32, 128, 1]
// CHECK: %[[TAKEN:.*]] = lowlp.view_global %[[P]] shape [%[[END]], 4, 32] : !lowlp.ptr<f32>
// CHECK: lowlp.store_global %{{.*}}, %[[GIVEN]][%[[NUMBER]], %[[FIRST]], %c0{{.*}}] in_bounds
// CHECK: lowlp.alloc_global shape affine_map<(d0) -> (d0 * 4, 3)> zeroed : !lowlp.ptr<si32>
// CHECK: scf.if
// CHECK: lowlp.semaphore_acquire %{{.*}}[%[[FIRST]], %c0{{.*}}], %c3
// CHECK: lowlp.semaphore_release %{{.*}}[%[[FIRST]], %c0{{.*}}], %c0
// CHECK: lowlp.semaphore_release %{{.*}}[%[[FIRST]], %c1{{.*}}], %c1
// CHECK: lowlp.semaphore_acquire %{{.*}}[%[[FIRST]], %c2{{.*}}], %c3
// CHECK: lowlp.semaphore_release %{{.*}}[%[[FIRST]], %c2{{.*}}], %c0
// CHECK: lowlp.semaphore_release %{{.*}}[%[[FIRST]], %c1{{.*}}], %c0
// CHECK: } else {
// CHECK: lowlp.semaphore_release add %{{.*}}[%[[FIRST]], %c0{{.*}}], %c1
// CHECK: lowlp.semaphore_acquire %{{.*}}[%[[FIRST]], %c1{{.*}}], %c1
// CHECK: lowlp.semaphore_release add %{{.*}}[%[[FIRST]], %c2{{.*}}], %c1
// CHECK: lowlp.load_global %[[TAKEN]][%[[BLOCK]], %c0{{.*}}, %c0{{.*}}] in_bounds
// CHECK-NOT: lowlp.exchange_in_cluster
lowlp.kernel @exchange(%p: !lowlp.ptr<f32>, %m: i32) attributes {grid = affine_map<(m) -> (m * 4)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 4>} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 32] : !lowlp.ptr<f32> -> !lowlp.global<4x32xf32>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<4x32xf32> -> !parts
  %r = lowlp.exchange_in_cluster %t : !parts
  lowlp.store_global %r, %v[%c0, %c0] : !parts, !lowlp.global<4x32xf32>
  lowlp.return
}
