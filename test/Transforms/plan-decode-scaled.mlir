// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-decode))" | FileCheck %s

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!bytes = !lowlp.tile<16x1xui8, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Signed codes are stored plus 8, which the plan takes off as a zero point; accumulators need nothing more.
// CHECK-LABEL: lowlp.kernel @scaled
// CHECK: %[[SCALES:.*]] = lowlp.splat {{.*}} !lowlp.tile<16x1xf16
// CHECK: %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f16
// CHECK: %[[ZEROS:.*]] = lowlp.splat %[[EIGHT]]
// CHECK: %[[A:.*]] = lowlp.decode %{{.*}} scales %[[SCALES]] : {{.*}} zeros %[[ZEROS]] : {{.*}} {plan = #lowlp.plan<["decode int4.f16 weights words 4",
// CHECK-NOT: lowlp.mul
// CHECK: %[[D:.*]] = lowlp.dot %[[A]]
// CHECK-NEXT: lowlp.neg %[[D]]
lowlp.kernel @scaled() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %half : f16 -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %scales = lowlp.broadcast %s : !column -> !halves
  %w = lowlp.mul %scales, %a : !halves
  %d = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!words1 = !lowlp.tile<16x1xui32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!bytes = !lowlp.tile<16x1xui8, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Zero points that are bytes are exact plus 8. Those that may be anything would be rounded once more: no plan.
// CHECK-LABEL: lowlp.kernel @zeros
// CHECK: %[[BYTES:.*]] = lowlp.cast {{.*}} !lowlp.tile<16x1xui8, {{.*}} -> !lowlp.tile<16x1xf16
// CHECK: arith.constant -8.000000e+00 : f16
// CHECK: %[[SHIFT:.*]] = lowlp.splat
// CHECK: %[[ZEROS:.*]] = lowlp.sub %[[BYTES]], %[[SHIFT]]
// CHECK: %[[A:.*]] = lowlp.decode %{{.*}} zeros %[[ZEROS]]
// CHECK: lowlp.dot %[[A]]
// CHECK-NOT: lowlp.decode %
// CHECK: %[[PLAIN:.*]] = lowlp.mul
// CHECK: lowlp.dot %[[PLAIN]]
lowlp.kernel @zeros() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %half : f16 -> !column
  %wide = lowlp.splat %word : i32 -> !words1
  %b = lowlp.cast %wide : !words1 -> !bytes
  %z = lowlp.cast %b : !bytes -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %scales = lowlp.broadcast %s : !column -> !halves
  %points = lowlp.broadcast %z : !column -> !halves
  %t = lowlp.sub %a, %points : !halves
  %w = lowlp.mul %t, %scales : !halves
  %d = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  %u = lowlp.sub %a, %scales : !halves
  %v = lowlp.mul %u, %scales : !halves
  %e = lowlp.dot %v, %x, %zeros : !halves, !x, !sum
  %m = lowlp.neg %e : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!factors = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x16xf16, local(1, 2).local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x16xf32, local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// With more than 8 columns offsets are taken off the weights; the powers of two go to the factors of the rows.
// CHECK-LABEL: lowlp.kernel @factors
// CHECK: %[[A:.*]] = lowlp.decode %{{.*}} {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent -24 offset -8", "row 1 exponent -20 offset -8",
// CHECK: %[[RAW:.*]] = lowlp.dot %[[A]]
// CHECK: %[[WIDE:.*]] = lowlp.cast
// CHECK: %[[ROWS:.*]] = lowlp.row_constants [1.67772{{.*}}, 1.04857{{.*}}] : !lowlp.tile<16x1xf32
// CHECK: %[[SCALED:.*]] = lowlp.mul %[[WIDE]], %[[ROWS]]
// CHECK: %[[ALL:.*]] = lowlp.broadcast %[[SCALED]]
// CHECK: lowlp.mul %[[ALL]], %[[RAW]]
// CHECK: %[[SECOND:.*]] = lowlp.dot
// CHECK: %[[ALL:.*]] = lowlp.broadcast
// CHECK: lowlp.fma %[[SECOND]], %[[ALL]], %{{.*}} :
lowlp.kernel @factors() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %half : f16 -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %raw = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %wide = lowlp.cast %s : !column -> !factors
  %f = lowlp.broadcast %wide : !factors -> !sum
  %d = lowlp.mul %f, %raw : !sum
  %second = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %e = lowlp.fma %second, %f, %d : !sum
  %n = lowlp.neg %e : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// The schedule of a kernel says where.
// CHECK-LABEL: lowlp.kernel @off_weights
// CHECK: offset -8
// CHECK-COUNT-1: lowlp.dot
// CHECK-NOT: lowlp.dot
// CHECK: lowlp.return
lowlp.kernel @off_weights() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<decode_offsets = weights>} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %raw = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %raw : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!half_column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!column = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Weights that are scaled in f32 by numbers of f16, times a scalar that the kernel bounds: scales take the powers of two, and the
// offset of signed codes is taken off the halves. A scalar that may be anything leaves both to the weights.
// CHECK-LABEL: lowlp.kernel @scaled_in_f32
// CHECK: %[[BOUND:.*]] = arith.maximumf
// CHECK: %[[FIT:.*]] = lowlp.splat %[[BOUND]]
// CHECK: %[[SCALES:.*]] = lowlp.mul %{{.*}}, %[[FIT]]
// CHECK: %[[A:.*]] = lowlp.decode
// CHECK: %[[WIDE:.*]] = lowlp.cast %[[A]]
// CHECK-NOT: lowlp.fma
// CHECK: %[[POWERS:.*]] = {{lowlp.row_constants|lowlp.splat}} {{.*}} !lowlp.tile<16x1xf32
// CHECK: %[[TIMES:.*]] = lowlp.mul %[[SCALES]], %[[POWERS]]
// CHECK: %[[REPEATED:.*]] = lowlp.broadcast %[[TIMES]]
// CHECK: lowlp.mul %[[WIDE]], %[[REPEATED]]
// CHECK: lowlp.dot
// CHECK: lowlp.decode
// CHECK: lowlp.fma
// CHECK: lowlp.mul
lowlp.kernel @scaled_in_f32(%any: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %low = arith.constant 5.42101086242752217E-20 : f32
  %high = arith.constant 1.8446744073709551616E+19 : f32
  %most = arith.minimumf %any, %high : f32
  %bounded = arith.maximumf %most, %low : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %h = lowlp.splat %half : f16 -> !half_column
  %s = lowlp.cast %h : !half_column -> !column
  %fit = lowlp.splat %bounded : f32 -> !column
  %fitted = lowlp.mul %s, %fit : !column
  %scales = lowlp.broadcast %fitted : !column -> !wide
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %f = lowlp.cast %a : !halves -> !wide
  %w = lowlp.mul %f, %scales : !wide
  %b = lowlp.cast %w : !wide -> !halves
  %d = lowlp.dot %b, %x, %zeros : !halves, !x, !sum
  %free = lowlp.splat %any : f32 -> !column
  %unbounded = lowlp.mul %s, %free : !column
  %others = lowlp.broadcast %unbounded : !column -> !wide
  %g = lowlp.cast %a : !halves -> !wide
  %v = lowlp.mul %g, %others : !wide
  %c = lowlp.cast %v : !wide -> !halves
  %e = lowlp.dot %c, %x, %d : !halves, !x, !sum
  %n = lowlp.neg %e : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Zero points that are any numbers: the powers of two are undone as these are subtracted, by one operation.
// CHECK-LABEL: lowlp.kernel @zeros_in_f32
// CHECK: %[[WIDE:.*]] = lowlp.cast %{{.*}} -> !lowlp.tile<16x64xf32
// CHECK: %[[LESS:.*]] = lowlp.neg %{{.*}} : !lowlp.tile<16x1xf32
// CHECK: %[[TAKEN:.*]] = lowlp.broadcast %[[LESS]]
// CHECK: %[[POWERS:.*]] = lowlp.row_constants [1.67772{{.*}}, 1.04857{{.*}}]
// CHECK: %[[NUMBERS:.*]] = lowlp.fma %[[WIDE]], %[[POWERS]], %[[TAKEN]]
// CHECK-NOT: lowlp.sub
// CHECK: lowlp.mul %[[NUMBERS]]
lowlp.kernel @zeros_in_f32(%any: f32, %z: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %column = lowlp.splat %any : f32 -> !column
  %scales = lowlp.broadcast %column : !column -> !wide
  %points = lowlp.splat %z : f32 -> !column
  %taken = lowlp.broadcast %points : !column -> !wide
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %f = lowlp.cast %a : !halves -> !wide
  %u = lowlp.sub %f, %taken : !wide
  %w = lowlp.mul %u, %scales : !wide
  %b = lowlp.cast %w : !wide -> !halves
  %d = lowlp.dot %b, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x2x128xui32, spatial(1, 2, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x32xui4, column_spatial(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x32xf16, column_spatial(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!stacked = !lowlp.tile<32x16xf16, spatial(2, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<32x1xf16, spatial(2, 1).local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<32x8xf16, spatial(2, 1).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<32x8xf32, spatial(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>

// Two warps have a slice of K each, whose rows have scales of their own: the weights are seen in slices as they are scaled.
// CHECK-LABEL: lowlp.kernel @slices
// CHECK: %[[SCALES:.*]] = lowlp.splat {{.*}} !lowlp.tile<32x1xf16
// CHECK: %[[A:.*]] = lowlp.decode %{{.*}} scales %[[SCALES]] : {{.*}} -> !lowlp.tile<16x32xf16
// CHECK-NOT: lowlp.mul
// CHECK: lowlp.dot %[[A]]
lowlp.kernel @slices() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %half : f16 -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %seen = lowlp.view %a : !halves -> !stacked
  %scales = lowlp.broadcast %s : !column -> !stacked
  %w = lowlp.mul %seen, %scales : !stacked
  %b = lowlp.view %w : !stacked -> !halves
  %d = lowlp.dot %b, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}
