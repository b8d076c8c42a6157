// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-decode))" | FileCheck %s

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Unsigned integers in f16 leave a power of two for each 8 rows. Accumulators that begin with zeros stay as they are; the loop's
// result is multiplied once.
// CHECK-LABEL: lowlp.kernel @loop
// CHECK: %[[ZEROS:.*]] = lowlp.splat
// CHECK: %[[RAW:.*]] = scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[ZEROS]])
// CHECK-NOT: lowlp.unpack
// CHECK: %[[A:.*]] = lowlp.decode %{{.*}} {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent
// CHECK: lowlp.dot %[[A]], %{{.*}}, %[[SUM]]
// CHECK: %[[FACTORS:.*]] = {{lowlp.row_constants|lowlp.splat}}
// CHECK: %[[RESULT:.*]] = lowlp.mul %[[RAW]], %[[FACTORS]]
// CHECK: lowlp.neg %[[RESULT]]
lowlp.kernel @loop() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
    %a = lowlp.cast %q : !codes -> !halves
    %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
    scf.yield %next : !sum
  }
  %n = lowlp.neg %s : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Signed ones count from 8 below: the loop also carries the sums of x, and 8 times these is taken off. Accumulators that begin with
// something are brought into the units of the plan first.
// CHECK-LABEL: lowlp.kernel @signed
// CHECK: lowlp.mul
// CHECK: %[[RAW:.*]]:2 = scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SUM_X:.*]] = %{{.*}})
// CHECK-DAG: lowlp.dot %{{.*}}, %[[X:.*]], %[[SUM]]
// CHECK-DAG: lowlp.dot %[[ONES:.*]], %[[X]], %[[SUM_X]]
// CHECK: %[[FACTORS:.*]] = lowlp.row_constants
// CHECK: %[[EIGHT:.*]] = arith.constant -8.000000e+00
// CHECK: %[[OFFSET:.*]] = lowlp.splat %[[EIGHT]]
// CHECK: %[[PART:.*]] = lowlp.mul %[[OFFSET]], %[[RAW]]#1
// CHECK: lowlp.fma %[[RAW]]#0, %[[FACTORS]], %[[PART]]
lowlp.kernel @signed() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %three = arith.constant 3.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %threes = lowlp.splat %three : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %threes) -> (!sum) {
    %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
    %a = lowlp.cast %q : !codes -> !halves
    %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
    scf.yield %next : !sum
  }
  %n = lowlp.neg %s : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Sums of x that the program has, for zero points say, are used; and a chain of products that no loop carries.
// CHECK-LABEL: lowlp.kernel @sums_of_x
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK-COUNT-2: lowlp.dot
// CHECK-NOT: lowlp.dot
// CHECK: scf.yield
// CHECK: lowlp.mul %{{.*}}, %[[R]]#0
// CHECK: lowlp.fma %[[R]]#1
// CHECK-COUNT-2: lowlp.decode
// CHECK: lowlp.neg
lowlp.kernel @sums_of_x() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %ones = lowlp.splat %one : f16 -> !halves
  %words = lowlp.splat %word : i32 -> !words
  %s:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%sum_x = %zeros, %acc = %zeros) -> (!sum, !sum) {
    %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
    %a = lowlp.cast %q : !codes -> !halves
    %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
    %more = lowlp.dot %ones, %x, %sum_x : !halves, !x, !sum
    scf.yield %more, %next : !sum, !sum
  }
  %p = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %b = lowlp.cast %p : !codes -> !halves
  %t = lowlp.dot %b, %x, %s#1 : !halves, !x, !sum
  %u = lowlp.dot %b, %x, %t : !halves, !x, !sum
  %n = lowlp.neg %u : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Casts that round or overflow stay: 15 * 2^13 is infinite in f16, and 2^-25 is 0. 15 * 2^12 and 15 * 2^-24 are exact.
// CHECK-LABEL: lowlp.kernel @rounded
// CHECK-COUNT-2: lowlp.cast {{.*}} : !lowlp.tile<16x64xf32{{.*}} -> !lowlp.tile<16x64xf16
// CHECK-NOT: lowlp.cast
// CHECK-COUNT-2: lowlp.decode %
// CHECK-NOT: lowlp.decode %
// CHECK: lowlp.return
lowlp.kernel @rounded() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %w = lowlp.cast %q : !codes -> !wide
  %f13 = arith.constant 8192.0 : f32
  %t13 = lowlp.splat %f13 : f32 -> !wide
  %m13 = lowlp.mul %w, %t13 : !wide
  %a13 = lowlp.cast %m13 : !wide -> !halves
  %s13 = lowlp.dot %a13, %x, %zeros : !halves, !x, !sum
  %n13 = lowlp.neg %s13 : !sum
  %f25 = arith.constant 0x33000000 : f32
  %t25 = lowlp.splat %f25 : f32 -> !wide
  %m25 = lowlp.mul %w, %t25 : !wide
  %a25 = lowlp.cast %m25 : !wide -> !halves
  %s25 = lowlp.dot %a25, %x, %zeros : !halves, !x, !sum
  %n25 = lowlp.neg %s25 : !sum
  %f12 = arith.constant 4096.0 : f32
  %t12 = lowlp.splat %f12 : f32 -> !wide
  %m12 = lowlp.mul %w, %t12 : !wide
  %a12 = lowlp.cast %m12 : !wide -> !halves
  %s12 = lowlp.dot %a12, %x, %zeros : !halves, !x, !sum
  %n12 = lowlp.neg %s12 : !sum
  %f24 = arith.constant 0x33800000 : f32
  %t24 = lowlp.splat %f24 : f32 -> !wide
  %m24 = lowlp.mul %w, %t24 : !wide
  %a24 = lowlp.cast %m24 : !wide -> !halves
  %s24 = lowlp.dot %a24, %x, %zeros : !halves, !x, !sum
  %n24 = lowlp.neg %s24 : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!brains = !lowlp.tile<16x64xbf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!xb = !lowlp.tile<64x8xbf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// A product of another type ends a chain, and a plan for f16 is none for it.
// CHECK-LABEL: lowlp.kernel @two_types
// CHECK: lowlp.cast {{.*}} -> !lowlp.tile<16x64xbf16
// CHECK: lowlp.decode %
// CHECK-NOT: lowlp.decode %
// CHECK: lowlp.return
lowlp.kernel @two_types() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %halfb = arith.constant 0.5 : bf16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %xb = lowlp.splat %halfb : bf16 -> !xb
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %b = lowlp.cast %q : !codes -> !brains
  %s = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %t = lowlp.dot %b, %xb, %s : !brains, !xb, !sum
  %n = lowlp.neg %t : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, reduce(spatial(2, 1, 1), dims=[0], keep_dims=True).spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<32x64xui2, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, reduce(spatial(1, 1, 2), dims=[2]).local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<32x8xf32, spatial(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>

// Two warps take the tiles of a unit by the plan of the first, whose rows are those of both.
// CHECK-LABEL: lowlp.kernel @shared_units
// CHECK: lowlp.decode %{{.*}} {plan = #lowlp.plan<["decode int2.f16 accumulators words 4", "row 0 exponent [[LOW:.*]]", "row 1 exponent [[HIGH:.*]]", "row 2 exponent [[LOW]]", "row 3 exponent [[HIGH]]",
// CHECK-SAME: "slot 15 = r{{[0-9]+}}"]>
// CHECK-NOT: lowlp.unpack
// CHECK: lowlp.return
lowlp.kernel @shared_units() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "int2.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %d = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %n = lowlp.neg %d : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!bytes = !lowlp.tile<16x1xui8, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!half_column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!column = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!words1 = !lowlp.tile<16x1xui32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>

// Of scales in two levels the one of more weights takes the powers of two, and so do small numbers times a known one. Numbers that may
// be anything take none: their product with a power of two may be infinite.
// CHECK-LABEL: lowlp.kernel @two_levels
// CHECK: %[[CODES:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<16x1xui8
// CHECK: %[[SUPERS:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<16x1xf16
// CHECK: %[[RAW:.*]] = lowlp.dot
// CHECK: %[[POWERS:.*]] = {{lowlp.row_constants|lowlp.splat}}
// CHECK: %[[TIMES:.*]] = lowlp.mul %[[SUPERS]], %[[POWERS]]
// CHECK: %[[COLUMN:.*]] = lowlp.mul %[[CODES]], %[[TIMES]]
// CHECK: %[[SCALES:.*]] = lowlp.broadcast %[[COLUMN]]
// CHECK: lowlp.fma %[[SCALES]], %[[RAW]]
// CHECK: %[[OTHER:.*]] = lowlp.dot
// CHECK: lowlp.mul %[[OTHER]]
// CHECK: %[[MADE:.*]] = lowlp.mul %[[SUPERS]], %{{.*}}
// CHECK: %[[KNOWN:.*]] = lowlp.dot
// CHECK: %[[POWERS:.*]] = {{lowlp.row_constants|lowlp.splat}}
// CHECK: %[[COLUMN:.*]] = lowlp.mul %[[MADE]], %[[POWERS]]
// CHECK: %[[SCALES:.*]] = lowlp.broadcast %[[COLUMN]]
// CHECK: lowlp.fma %[[SCALES]], %[[KNOWN]]
lowlp.kernel @two_levels(%third: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %nine = arith.constant 9 : i32
  %large = arith.constant 256.0 : f32
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %bits = lowlp.splat %nine : i32 -> !words1
  %b = lowlp.cast %bits : !words1 -> !bytes
  %h = lowlp.splat %half : f16 -> !half_column
  %code = lowlp.cast %b : !bytes -> !column
  %super = lowlp.cast %h : !half_column -> !column
  %any = lowlp.splat %third : f32 -> !column
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %scale = lowlp.mul %code, %super : !column
  %scales = lowlp.broadcast %scale : !column -> !sum
  %d = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %acc = lowlp.fma %scales, %d, %zeros : !sum
  %wide = lowlp.mul %code, %any : !column
  %wides = lowlp.broadcast %wide : !column -> !sum
  %e = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %other = lowlp.fma %wides, %e, %acc : !sum
  %number = lowlp.splat %large : f32 -> !column
  %made = lowlp.mul %super, %number : !column
  %mades = lowlp.broadcast %made : !column -> !sum
  %f = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %last = lowlp.fma %mades, %f, %other : !sum
  %n = lowlp.neg %last : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!dealt_words = !lowlp.tile<1x16xui32, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 16)>
!dealt_bytes = !lowlp.tile<1x16xui8, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 16)>
!dealt_halves = !lowlp.tile<1x16xf16, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 16)>
!dealt = !lowlp.tile<1x16xf32, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 16)>
!shared = !lowlp.tile<1x16xf32, local(1, 2).spatial(1, 8).reduce(spatial(1, 1, 4), dims=[2])>

// Threads that give each other what they make of scales multiply by the powers before that, each by those of its own rows.
// CHECK-LABEL: lowlp.kernel @scales_that_threads_share
// CHECK: %[[CODES:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<1x16xui8
// CHECK: %[[SUPERS:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<1x16xf16
// CHECK: %[[RAW:.*]] = lowlp.dot
// CHECK: %[[POWERS:.*]] = {{lowlp.row_constants|lowlp.splat}}
// CHECK: %[[SEEN:.*]] = lowlp.view %[[POWERS]]
// CHECK: %[[OWN:.*]] = lowlp.convert_layout %[[SEEN]]
// CHECK: %[[TIMES:.*]] = lowlp.mul %[[SUPERS]], %[[OWN]]
// CHECK: %[[MADE:.*]] = lowlp.mul %[[CODES]], %[[TIMES]]
// CHECK: %[[GIVEN:.*]] = lowlp.convert_layout %[[MADE]]
// CHECK: %[[COLUMN:.*]] = lowlp.view %[[GIVEN]]
// CHECK: %[[SCALES:.*]] = lowlp.broadcast %[[COLUMN]]
// CHECK: lowlp.fma %[[SCALES]], %[[RAW]]
lowlp.kernel @scales_that_threads_share() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %nine = arith.constant 9 : i32
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %bits = lowlp.splat %nine : i32 -> !dealt_words
  %b = lowlp.cast %bits : !dealt_words -> !dealt_bytes
  %h = lowlp.splat %half : f16 -> !dealt_halves
  %code = lowlp.cast %b : !dealt_bytes -> !dealt
  %super = lowlp.cast %h : !dealt_halves -> !dealt
  %scale = lowlp.mul %code, %super : !dealt
  %given = lowlp.convert_layout %scale : !dealt -> !shared
  %column = lowlp.view %given : !shared -> !column
  %scales = lowlp.broadcast %column : !column -> !sum
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %d = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %acc = lowlp.fma %scales, %d, %zeros : !sum
  %n = lowlp.neg %acc : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<64x16xui1, local(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>
!brains = !lowlp.tile<64x16xbf16, local(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>
!brain_column = !lowlp.tile<64x1xbf16, local(8, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!column = !lowlp.tile<64x1xf32, local(8, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<16x8xbf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x8xf32, local(8, 1).spatial(8, 4).local(1, 2)>

// bf16 has the range of f32, whose least bits are 2^16 times smaller: powers from 2^-16 to 1 go to the column, others stay.
// CHECK-LABEL: lowlp.kernel @scales_of_bf16
// CHECK: %[[WIDE:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<64x1xbf16
// CHECK: %[[RAW:.*]] = lowlp.dot
// CHECK: lowlp.row_constants [1.000000e+00, 5.000000e-01, {{.*}}, 1.000000e+00] : !lowlp.tile<64x1xf32
// CHECK: %[[COLUMN:.*]] = lowlp.mul %[[WIDE]], %{{.*}} : !lowlp.tile<64x1xf32
// CHECK: %[[SCALES:.*]] = lowlp.broadcast %[[COLUMN]]
// CHECK: %[[LEFT:.*]] = lowlp.row_constants [1.000000e+00, 1.000000e+00, {{.*}}, 6.400000e+01] : !lowlp.tile<64x8xf32
// CHECK: %[[SUM:.*]] = lowlp.mul %{{.*}}, %[[LEFT]]
// CHECK: lowlp.fma %[[SCALES]], %[[SUM]]
lowlp.kernel @scales_of_bf16() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : bf16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : bf16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %half : bf16 -> !brain_column
  %scale = lowlp.cast %s : !brain_column -> !column
  %q = lowlp.unpack %words from "int1.bf16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !brains
  %scales = lowlp.broadcast %scale : !column -> !sum
  %d = lowlp.dot %a, %x, %zeros : !brains, !x, !sum
  %acc = lowlp.fma %scales, %d, %zeros : !sum
  %n = lowlp.neg %acc : !sum
  lowlp.return
}
