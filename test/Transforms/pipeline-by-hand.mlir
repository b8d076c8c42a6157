// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings,lowlp-pipeline))" | FileCheck %s

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

// By asynchronous copies where tensor copies could be, of five places where three were asked for; one copy for two tiles, of
// which the program loads the second first.
// CHECK-LABEL: lowlp.kernel @by_hand
// CHECK-SAME: pipelines = ["5 stages of 256 bytes by asynchronous copies"]
// CHECK: %[[RING:.*]] = lowlp.alloc_shared : !lowlp.shared<5x128xf16>
// CHECK: lowlp.copy_async %{{.*}} to %[[RING]]{{.*}} shape [128]
// CHECK: scf.for
// CHECK: %[[C64:.*]] = arith.constant 64 : index
// CHECK: lowlp.load_shared %[[RING]][%{{.*}}, %[[C64]]] in_bounds
// CHECK: lowlp.load_shared %[[RING]]
// CHECK-NOT: lowlp.ring
lowlp.kernel @by_hand(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    %b = lowlp.load_global %v[%i, %c64] {lowlp.ring = #lowlp.ring<0 at [64]>} : !lowlp.global<?x128xf16> -> !t
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
    lowlp.print_tile "a", %a : !t
    lowlp.print_tile "b", %b : !t
  } {lowlp.stages = #lowlp.stages<3>, lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<5x128xf16>]>}
  lowlp.return
}
