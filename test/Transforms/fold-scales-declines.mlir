// RUN: lowlp-opt %s --split-input-file --remarks-filter-missed=lowlp-fold-scales --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-fold-scales))" 2>&1 >%t | FileCheck %s
// RUN: not lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-fold-scales{when=often}))" 2>&1 | FileCheck %s --check-prefix=WHEN
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-fold-scales{when=always}))" | FileCheck %s --check-prefix=ALWAYS

// WHEN: error: when must be auto or always, but is often
!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: remark: {{.*}}Function=not_allowed | Op=lowlp.dot, Reason="the kernel's schedule does not say reassociate"
lowlp.kernel @not_allowed() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
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
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x32xf16, local(1, 4).local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x32xf32, local(1, 4).local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: Function=dear | Op=lowlp.dot, Reason="on the accumulators the scales cost 16 instructions of a thread, on the weights 16"
// ALWAYS-LABEL: lowlp.kernel @dear
// ALWAYS: %[[RAW:.*]] = lowlp.dot
// ALWAYS: lowlp.mul %[[RAW]]
lowlp.kernel @dear() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
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
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: Function=not_by_rows | Op=lowlp.dot, Reason="weights are made by lowlp.neg, which is no product or sum with one number for each row"
// ALWAYS-LABEL: lowlp.kernel @not_by_rows
// ALWAYS: %[[W:.*]] = lowlp.neg
// ALWAYS: lowlp.dot %[[W]]
lowlp.kernel @not_by_rows() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
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
  %v = lowlp.neg %w : !halves
  %d = lowlp.dot %v, %x, %zeros : !halves, !x, !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x2x128xui32, spatial(1, 2, 1).spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x128xsi4, spatial(1, 2).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x128xf16, spatial(1, 2).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, reduce(spatial(1, 2), dims=[1], keep_dims=True).local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<128x8xf16, spatial(2, 1).local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<32x8xf32, spatial(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: Function=slices | Op=lowlp.dot, Reason="the product has slices, whose rows may have numbers of their own"
lowlp.kernel @slices() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64, schedule = #lowlp.schedule<reassociate = true>} {
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
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x256xui32, local(1, 1, 2).spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64x!lowlp.float<e6m1>, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: Function=too_wide | Op=lowlp.dot, Reason="the type of the product does not hold the weights before they are scaled"
lowlp.kernel @too_wide() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<reassociate = true>} {
  %zero = arith.constant 0.0 : f32
  %tiny = arith.constant 1.0e-8 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %s = lowlp.splat %tiny : f32 -> !wide
  %q = lowlp.unpack %words from "e6m1.bf16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !wide
  %t = lowlp.mul %a, %s : !wide
  %w = lowlp.cast %t : !wide -> !halves
  %d = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
  lowlp.return
}
