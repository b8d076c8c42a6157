// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-decode))" | FileCheck %s

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!bytes = !lowlp.tile<16x64xui8, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!x = !lowlp.tile<64x8xsi8, local(4, 1).column_spatial(4, 8).local(4, 1)>
!sum = !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>

// Codes in bytes without sign have no offsets; powers of two are shifted off the sums of integers once, after the loop.
// CHECK-LABEL: lowlp.kernel @integers
// CHECK: %[[RAW:.*]] = scf.for
// CHECK-NOT: lowlp.unpack
// CHECK: lowlp.decode %{{.*}} {plan = #lowlp.plan<["decode int4.int8 unsigned words 4", "row 0 exponent [[E0:[0-4]]]", "row 1 exponent [[E1:[0-4]]]"
// CHECK-SAME: -> !lowlp.tile<16x64xui8
// CHECK: lowlp.dot
// CHECK-NOT: lowlp.dot
// CHECK: %[[POWERS:.*]] = lowlp.row_constants {{\[}}[[E0]].000000e+00, [[E1]].000000e+00]
// CHECK: %[[SUM:.*]] = lowlp.shr %[[RAW]], %[[POWERS]]
// CHECK: lowlp.not %[[SUM]]
lowlp.kernel @integers() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0 : i32
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : i32 -> !sum
  %words = lowlp.splat %word : i32 -> !words
  %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    %x = lowlp.view %words : !words -> !x
    %q = lowlp.unpack %words from "int4.int8" : !words -> !codes
    %a = lowlp.cast %q : !codes -> !bytes
    %next = lowlp.dot %a, %x, %acc : !bytes, !x, !sum
    scf.yield %next : !sum
  }
  %n = lowlp.not %s : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!bytes = !lowlp.tile<16x64xf8E4M3FN, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!x = !lowlp.tile<64x8xf8E4M3FN, local(4, 1).column_spatial(4, 8).local(4, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// What signed integers in 8-bit floats are above their values is taken off by sums of x, products with ones.
// CHECK-LABEL: lowlp.kernel @floats
// CHECK: %[[A:.*]] = lowlp.decode %{{.*}} {plan = #lowlp.plan<["decode int4.f8e4m3 accumulators
// CHECK: lowlp.dot %[[A]]
// CHECK: %[[ONES:.*]] = lowlp.view %{{.*}} -> !lowlp.tile<16x64xf8E4M3FN
// CHECK: lowlp.dot %[[ONES]]
// CHECK: lowlp.neg
lowlp.kernel @floats() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %word = arith.constant 77 : i32
  %words = lowlp.splat %word : i32 -> !words
  %x = lowlp.view %words : !words -> !x
  %zeros = lowlp.splat %zero : f32 -> !sum
  %q = lowlp.unpack %words from "int4.f8e4m3" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !bytes
  %s = lowlp.dot %a, %x, %zeros : !bytes, !x, !sum
  %n = lowlp.neg %s : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!bytes = !lowlp.tile<16x64xf8E4M3FN, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!x = !lowlp.tile<64x8xf8E4M3FN, local(4, 1).column_spatial(4, 8).local(4, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Where warpgroups multiply, bytes hold the signs in place of that.
// CHECK-LABEL: lowlp.kernel @signs
// CHECK: lowlp.decode %{{.*}} {plan = #lowlp.plan<["decode int4.f8e4m3 accumulators words 4", "row 0 exponent -9 offset -8", "row 1 exponent -9 offset -8"
// CHECK-SAME: = mad r{{[0-9]+}}, 0x81, r
// CHECK: lowlp.dot
// CHECK-NOT: lowlp.dot
// CHECK: lowlp.neg
lowlp.kernel @signs() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %zero = arith.constant 0.0 : f32
  %word = arith.constant 77 : i32
  %words = lowlp.splat %word : i32 -> !words
  %x = lowlp.view %words : !words -> !x
  %zeros = lowlp.splat %zero : f32 -> !sum
  %q = lowlp.unpack %words from "int4.f8e4m3" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !bytes
  %s = lowlp.dot %a, %x, %zeros : !bytes, !x, !sum
  %n = lowlp.neg %s : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xf4E2M1FN, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!bytes = !lowlp.tile<16x64xf8E4M3FN, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!x = !lowlp.tile<64x8xf8E4M3FN, local(4, 1).column_spatial(4, 8).local(4, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Products that are added to a sum and no more are multiplied by the power of two of the plan as they are added.
// CHECK-LABEL: lowlp.kernel @added
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK: %[[RAW:.*]] = lowlp.dot
// CHECK: %[[NUMBER:.*]] = arith.constant 6.400000e+01 : f32
// CHECK: %[[POWERS:.*]] = lowlp.splat %[[NUMBER]]
// CHECK: %[[NEXT:.*]] = lowlp.fma %[[RAW]], %[[POWERS]], %[[ACC]]
// CHECK: scf.yield %[[NEXT]]
// What is used elsewhere too has a product of its own.
// CHECK: %[[OTHER:.*]] = lowlp.dot
// CHECK: %[[SCALED:.*]] = lowlp.mul %[[OTHER]]
// CHECK: lowlp.add %[[SCALED]], %{{.*}}
// CHECK: lowlp.neg %[[SCALED]]
lowlp.kernel @added() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %word = arith.constant 77 : i32
  %words = lowlp.splat %word : i32 -> !words
  %x = lowlp.view %words : !words -> !x
  %zeros = lowlp.splat %zero : f32 -> !sum
  %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    %q = lowlp.unpack %words from "e2m1.f8e4m3" : !words -> !codes
    %a = lowlp.cast %q : !codes -> !bytes
    %raw = lowlp.dot %a, %x, %zeros : !bytes, !x, !sum
    %next = lowlp.add %raw, %acc : !sum
    scf.yield %next : !sum
  }
  %q = lowlp.unpack %words from "e2m1.f8e4m3" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !bytes
  %raw = lowlp.dot %a, %x, %zeros : !bytes, !x, !sum
  %sum = lowlp.add %raw, %s : !sum
  %n = lowlp.neg %raw : !sum
  lowlp.return
}
