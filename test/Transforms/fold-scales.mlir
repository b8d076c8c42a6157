// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-fold-scales))" | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-fold-scales,lowlp-plan-decode))" | FileCheck %s --check-prefix=PLANNED

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// The product takes the codes as they are and begins with zeros; the sum that the loop carries gets it scaled. A plan then
// leaves a power of two to each row, which its scale takes.
// CHECK-LABEL: lowlp.kernel @scaled
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] =
// CHECK: %[[A:.*]] = lowlp.cast %{{.*}} -> !lowlp.tile<16x64xf16
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[ZEROS:.*]] = lowlp.splat %[[ZERO]]
// CHECK: %[[RAW:.*]] = lowlp.dot %[[A]], %{{.*}}, %[[ZEROS]]
// CHECK: %[[WIDE:.*]] = lowlp.cast %{{.*}} -> !lowlp.tile<16x1xf32
// CHECK: %[[S:.*]] = lowlp.broadcast %[[WIDE]]
// CHECK: %[[NEXT:.*]] = lowlp.fma %[[S]], %[[RAW]], %[[ACC]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK-NOT: lowlp.mul
// PLANNED-LABEL: lowlp.kernel @scaled
// PLANNED: lowlp.decode %{{[^ ]*}} {plan = #lowlp.plan<["decode int4.f16 accumulators
lowlp.kernel @scaled() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %begin = lowlp.splat %one : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %half : f16 -> !column
  %accumulators = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %begin) -> (!sum) {
    %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
    %a = lowlp.cast %q : !codes -> !halves
    %scales = lowlp.broadcast %s : !column -> !halves
    %w = lowlp.mul %scales, %a : !halves
    %next = lowlp.dot %w, %x, %acc : !halves, !x, !sum
    scf.yield %next : !sum
  }
  %n = lowlp.neg %accumulators : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!words1 = !lowlp.tile<16x1xui32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!points = !lowlp.tile<16x1xui8, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Zero points go on the sums of x, which a product with ones makes; bytes are cast to f32 at once. What is added to
// scaled weights goes on the same accumulators.
// CHECK-LABEL: lowlp.kernel @zero_points
// CHECK: %[[BYTES:.*]] = lowlp.cast {{.*}} -> !lowlp.tile<16x1xui8
// CHECK: %[[RAW:.*]] = lowlp.dot %{{.*}}, %[[X:.*]], %{{.*}}
// CHECK: %[[Z:.*]] = lowlp.cast %[[BYTES]] : {{.*}} -> !lowlp.tile<16x1xf32
// CHECK: %[[POINTS:.*]] = lowlp.broadcast %[[Z]]
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f16
// CHECK: %[[ONES:.*]] = lowlp.splat %[[ONE]]
// CHECK: %[[SUMS_OF_X:.*]] = lowlp.dot %[[ONES]], %[[X]], %{{.*}}
// CHECK: %[[PART:.*]] = lowlp.mul %[[POINTS]], %[[SUMS_OF_X]]
// CHECK: %[[REST:.*]] = lowlp.sub %[[RAW]], %[[PART]]
// CHECK: %[[SCALED:.*]] = lowlp.mul %[[REST]], %{{.*}} :
// CHECK: %[[ALL:.*]] = lowlp.fma %{{.*}}, %[[SUMS_OF_X]], %[[SCALED]]
// CHECK-NOT: lowlp.dot
// CHECK: lowlp.add %{{.*}}, %[[ALL]]
lowlp.kernel @zero_points() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %begin = lowlp.neg %zeros : !sum
  %s = lowlp.splat %half : f16 -> !column
  %wide = lowlp.splat %word : i32 -> !words1
  %b = lowlp.cast %wide : !words1 -> !points
  %z = lowlp.cast %b : !points -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %scales = lowlp.broadcast %s : !column -> !halves
  %points = lowlp.broadcast %z : !column -> !halves
  %t = lowlp.sub %a, %points : !halves
  %u = lowlp.mul %t, %scales : !halves
  %w = lowlp.add %u, %scales : !halves
  %d = lowlp.dot %w, %x, %begin : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!factors = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>

// Weights that are scaled in f32, and by two factors, are decoded by a plan: without the pass there is none for them.
// CHECK-LABEL: lowlp.kernel @in_f32
// CHECK: %[[A:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<16x64xsi4, {{.*}} -> !lowlp.tile<16x64xf16
// CHECK: %[[RAW:.*]] = lowlp.dot %[[A]]
// CHECK: %[[S:.*]] = lowlp.broadcast
// CHECK: %[[SCALED:.*]] = lowlp.mul %[[RAW]], %[[S]]
// CHECK: %[[THREES:.*]] = lowlp.splat {{.*}} -> !lowlp.tile<16x8xf32
// CHECK: %[[ALL:.*]] = lowlp.mul %[[SCALED]], %[[THREES]]
// CHECK-NEXT: lowlp.neg %[[ALL]]
// PLANNED-LABEL: lowlp.kernel @in_f32
// PLANNED: lowlp.decode
lowlp.kernel @in_f32() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %three = arith.constant 3.0 : f32
  %s = lowlp.splat %three : f32 -> !factors
  %threes = lowlp.splat %three : f32 -> !wide
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !wide
  %scales = lowlp.broadcast %s : !factors -> !wide
  %t = lowlp.mul %a, %scales : !wide
  %u = lowlp.mul %threes, %t : !wide
  %w = lowlp.cast %u : !wide -> !halves
  %d = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Two steps of a group, whose scales are the same, are one sum; the third is of another group.
// CHECK-LABEL: lowlp.kernel @groups
// CHECK: %[[FIRST:.*]] = lowlp.dot %[[A:.*]], %{{.*}}, %{{.*}} :
// CHECK: %[[BOTH:.*]] = lowlp.dot %[[A]], %{{.*}}, %[[FIRST]] :
// CHECK: %[[SUM:.*]] = lowlp.mul %[[BOTH]]
// CHECK: %[[RAW:.*]] = lowlp.dot
// CHECK: lowlp.fma %{{.*}}, %[[RAW]], %[[SUM]]
// CHECK-NOT: lowlp.fma
// CHECK: lowlp.return
lowlp.kernel @groups() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %quarter = arith.constant 0.25 : f16
  %s = lowlp.splat %half : f16 -> !column
  %t = lowlp.splat %quarter : f16 -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %scales1 = lowlp.broadcast %s : !column -> !halves
  %scales2 = lowlp.broadcast %s : !column -> !halves
  %scales3 = lowlp.broadcast %t : !column -> !halves
  %w1 = lowlp.mul %a, %scales1 : !halves
  %w2 = lowlp.mul %a, %scales2 : !halves
  %w3 = lowlp.mul %a, %scales3 : !halves
  %d1 = lowlp.dot %w1, %x, %zeros : !halves, !x, !sum
  %d2 = lowlp.dot %w2, %x, %d1 : !halves, !x, !sum
  %d3 = lowlp.dot %w3, %x, %d2 : !halves, !x, !sum
  %n = lowlp.neg %d3 : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!table = !lowlp.shared<16xf16>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Entries of a table are no codes to cast, but can be multiplied as they are.
// CHECK-LABEL: lowlp.kernel @table
// CHECK: %[[W:.*]] = lowlp.lookup
// CHECK: lowlp.dot %[[W]]
lowlp.kernel @table() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %table = lowlp.alloc_shared : !table
  %s = lowlp.splat %half : f16 -> !column
  %q = lowlp.unpack %words from "lut4.f16" : !words -> !codes
  %a = lowlp.lookup %table, %q : !table, !codes -> !halves
  %scales = lowlp.broadcast %s : !column -> !halves
  %w = lowlp.mul %a, %scales : !halves
  %d = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}
