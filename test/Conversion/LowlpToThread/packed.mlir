// RUN: lowlp-opt %s --split-input-file --lowlp-convert-to-thread --verify-diagnostics | FileCheck %s

!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// A value whose rows are alike in all threads is a constant.
// CHECK-LABEL: gpu.func @rows
// CHECK-DAG: arith.constant 2.000000e+00 : f32
// CHECK-DAG: arith.constant 4.000000e+00 : f32
// CHECK-NOT: arith.select
// CHECK: gpu.return
lowlp.kernel @rows() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %r = lowlp.row_constants [2.0, 4.0] : !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// A plan that does something else is an error, not a wrong answer.
lowlp.kernel @wrong() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %w = arith.constant 0 : i32
  %words = lowlp.splat %w : i32 -> !words
  // expected-error @below {{'lowlp.decode' op plan for int4.f16: code 1 at slot}}
  // expected-error @below {{failed to legalize operation 'lowlp.decode'}}
  %a = lowlp.decode %words {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent -24", "row 1 exponent -24", "r4 = lop3 r0, 0x0, 0x0, 0xc0", "slot 0 = r4", "slot 1 = r4", "slot 2 = r4", "slot 3 = r4", "slot 4 = r4", "slot 5 = r4", "slot 6 = r4", "slot 7 = r4", "slot 8 = r4", "slot 9 = r4", "slot 10 = r4", "slot 11 = r4", "slot 12 = r4", "slot 13 = r4", "slot 14 = r4", "slot 15 = r4"]>} : !words -> !halves
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, reduce(spatial(4, 1, 1), dims=[0], keep_dims=True).spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<64x64xui1, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// Warps that share units bring their tile's bits to where the first tile has its own, and have one code.
// CHECK-LABEL: gpu.func @rotated
// CHECK-NOT: scf.index_switch
// CHECK-COUNT-4: simt.funnel_shift
// CHECK-NOT: simt.funnel_shift
// CHECK: gpu.return
lowlp.kernel @rotated() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %w = arith.constant 77 : i32
  %words = lowlp.splat %w : i32 -> !words
  %q = lowlp.unpack %words from "int1.f16" : !words -> !codes
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, reduce(spatial(4, 1, 1), dims=[0], keep_dims=True).spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<64x64xui1, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// Indices of a table have words of their own for each tile.
// CHECK-LABEL: gpu.func @selected
// CHECK-NOT: scf.index_switch
// CHECK-COUNT-3: arith.select
// CHECK-NOT: arith.select
// CHECK-NOT: simt.funnel_shift
// CHECK: gpu.return
lowlp.kernel @selected() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %w = arith.constant 77 : i32
  %words = lowlp.splat %w : i32 -> !words
  %q = lowlp.unpack %words from "lut1.f16" : !words -> !codes
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, reduce(spatial(2, 1, 1), dims=[0], keep_dims=True).spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<32x64xui2, spatial(2, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>

// Signed bytes lie from the top down.
// CHECK-LABEL: gpu.func @rotated_up
// CHECK: %[[AMOUNT:.*]] = arith.constant 28 : index
// CHECK: arith.muli {{.*}}, %[[AMOUNT]]
// CHECK-COUNT-4: simt.funnel_shift
// CHECK-NOT: simt.funnel_shift
// CHECK: gpu.return
lowlp.kernel @rotated_up() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %w = arith.constant 77 : i32
  %words = lowlp.splat %w : i32 -> !words
  %q = lowlp.unpack %words from "int2.int8" : !words -> !codes
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x96xui32, reduce(spatial(2, 1, 1), dims=[0], keep_dims=True).local(1, 1, 3).spatial(1, 1, 32)>
!codes = !lowlp.tile<32x32xui3, spatial(2, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>

// In narrow units tiles do not lie alike: code for each of two.
// CHECK-LABEL: gpu.func @branches
// CHECK: scf.index_switch
// CHECK-NEXT: case 1
// CHECK-NOT: case
// CHECK: default
lowlp.kernel @branches() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %w = arith.constant 77 : i32
  %words = lowlp.splat %w : i32 -> !words
  %q = lowlp.unpack %words from "int3.f16.k32" : !words -> !codes
  lowlp.return
}
