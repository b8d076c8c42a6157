// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings,lowlp-pipeline))" | FileCheck %s

// What stands in the way of tensor copies; asynchronous copies make the loads then.

// CHECK-LABEL: lowlp.kernel @align
// CHECK-SAME: by asynchronous copies: parameter 0 promises no alignment of 16 bytes"]
lowlp.kernel @align(%p: !lowlp.ptr<f16>, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @named
// CHECK-SAME: by asynchronous copies: weights promises no alignment of 16 bytes"]
lowlp.kernel @named(%p: !lowlp.ptr<f16> {lowlp.align = 8 : i64, lowlp.name = "weights"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @rank
// CHECK-SAME: by asynchronous copies: the view of parameter 0 has more than 5 dimensions"]
lowlp.kernel @rank(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 2, 2, 2, 2, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x2x2x2x2x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0, %c0, %c0, %c0, %c0] : !lowlp.global<?x2x2x2x2x64xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @last_stride
// CHECK-SAME: by asynchronous copies: the last stride of parameter 0 is not 1"]
lowlp.kernel @last_stride(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] strides [128, 2] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @formula
// CHECK-SAME: by asynchronous copies: extents and strides of parameter 0 are no affine functions of the parameters"]
lowlp.kernel @formula(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %square = arith.muli %n, %n : index
  %v = lowlp.view_global %p shape [%square, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @stride
// CHECK-SAME: by asynchronous copies: a stride of parameter 0 may be no multiple of 16 bytes"]
lowlp.kernel @stride(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 68] : !lowlp.ptr<f16> -> !lowlp.global<?x68xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x68xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @offset
// CHECK-SAME: by asynchronous copies: an offset in parameter 0 may be no multiple of 16 bytes"]
lowlp.kernel @offset(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [64, 1024] : !lowlp.ptr<f16> -> !lowlp.global<64x1024xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%c0, %i] : !lowlp.global<64x1024xf16> -> !lowlp.tile<64xf16, spatial(32).local(2)>
    lowlp.print_tile "t", %t : !lowlp.tile<64xf16, spatial(32).local(2)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @extent
// CHECK-SAME: by asynchronous copies: an extent of the part of parameter 0 is more than 256"]
lowlp.kernel @extent(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 512, 8] : !lowlp.ptr<f16> -> !lowlp.global<?x512x8xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0, %c0] : !lowlp.global<?x512x8xf16> -> !lowlp.tile<512x8xf16, local(16, 1).spatial(32, 1).local(1, 8)>
    lowlp.print_tile "t", %t : !lowlp.tile<512x8xf16, local(16, 1).spatial(32, 1).local(1, 8)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel @row
// CHECK-SAME: by asynchronous copies: rows of the part of parameter 0 are no multiples of 16 bytes"]
lowlp.kernel @row(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !lowlp.tile<4xf16, reduce(spatial(8, 4), dims=[0])>
    lowlp.print_tile "t", %t : !lowlp.tile<4xf16, reduce(spatial(8, 4), dims=[0])>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

// Pieces of a row would not begin at multiples of 128 bytes.
// CHECK-LABEL: lowlp.kernel @long_row
// CHECK-SAME: by asynchronous copies: rows of the part of parameter 0 have more than 256 elements and are no multiples of 128 bytes"]
lowlp.kernel @long_row(%p: !lowlp.ptr<ui8> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 1024] : !lowlp.ptr<ui8> -> !lowlp.global<?x1024xui8>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x1024xui8> -> !lowlp.tile<1x448xui8, local(1, 14).spatial(1, 32)>
    lowlp.print_tile "t", %t : !lowlp.tile<1x448xui8, local(1, 14).spatial(1, 32)>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}
