// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!codes = !lowlp.tile<16x32xui8, local(1, 8).local(2, 1).spatial(8, 4)>
!sums = !lowlp.tile<16x4xf32, local(2, 1).spatial(8, 4)>

// A thread holds four words of codes, of two rows and eight columns. Bits 3 and 4 of the lane, of its row, exchange
// words, and bit 2 bytes of a word, by the selector. In lines of 256 bytes one instruction makes an address.
// CHECK-LABEL: gpu.func @exchanged
// CHECK-DAG: %[[TABLE:.*]] = simt.shared_memory 0 : <shared>
// CHECK-DAG: %[[SELECTOR:.*]] = arith.constant 30468 : i32
// CHECK: %[[WORDS:.*]] = simt.load %{{.*}} : <global> -> vector<4xi32>
// CHECK: %[[BYTES:.*]] = arith.shli %{{.*}}, %c5_i32 : i32
// CHECK: %[[ISODD:.*]] = arith.cmpi ne, %{{.*}}, %c0_i32 : i32
// CHECK-COUNT-4: arith.select %[[ISODD]], %{{.*}} : i32
// CHECK: %[[ISFAR:.*]] = arith.cmpi ne, %{{.*}}, %c0_i32 : i32
// CHECK-COUNT-4: arith.select %[[ISFAR]], %{{.*}} : i32
// CHECK: %[[OWN:.*]] = arith.xori %[[BYTES]], %[[SELECTOR]] : i32
// CHECK: %[[ADDRESS:.*]] = simt.select_bytes %{{.*}}, %{{.*}} by %[[OWN]]
// CHECK: %[[OFFSET:.*]] = arith.extui %[[ADDRESS]] : i32 to i64
// CHECK: %[[VALUE:.*]] = simt.load %{{.*}}[%[[OFFSET]]] align 4 : <shared> -> f32
// CHECK: arith.addf %[[VALUE]], %{{.*}} : f32
// CHECK-COUNT-15: simt.select_bytes
// CHECK-NOT: simt.select_bytes
// CHECK: gpu.return
lowlp.kernel @exchanged(%p: !lowlp.ptr<ui8> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 16] : !lowlp.ptr<ui8> -> !lowlp.global<32x16xui8>
  %r = lowlp.view_global %y shape [16, 4] : !lowlp.ptr<f32> -> !lowlp.global<16x4xf32>
  %s = lowlp.alloc_shared : !lowlp.shared<256x2x32xf32>
  %raw = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<32x16xui8> -> !lowlp.tile<32x16xui8, spatial(32, 1).local(1, 16)>
  %codes = lowlp.view %raw : !lowlp.tile<32x16xui8, spatial(32, 1).local(1, 16)> -> !codes
  %zero = arith.constant 0.0 : f32
  %none = lowlp.splat %zero : f32 -> !sums
  %t = lowlp.add_lookups %codes in %s[%c0], %none : !codes, !lowlp.shared<256x2x32xf32>, !sums
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !sums, !lowlp.global<16x4xf32>
  lowlp.return
}

// Codes of other widths stay in their places; those that may name no entry are checked.
// CHECK-LABEL: gpu.func @checked
// CHECK-NOT: arith.select
// CHECK: %[[IS:.*]] = arith.cmpi ult, %[[CODE:.*]], %c200_i32 : i32
// CHECK: simt.assert %[[IS]], "a code names no entry of the table"
// CHECK: arith.muli %[[CODE]], %c16_i32 : i32
// CHECK: simt.load %{{.*}} align 4 : <shared> -> f32
lowlp.kernel @checked(%p: !lowlp.ptr<ui16>, %y: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [8, 4] : !lowlp.ptr<ui16> -> !lowlp.global<8x4xui16>
  %r = lowlp.view_global %y shape [8, 4] : !lowlp.ptr<f32> -> !lowlp.global<8x4xf32>
  %s = lowlp.alloc_shared : !lowlp.shared<200x4xf32>
  %codes = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<8x4xui16> -> !lowlp.tile<8x4xui16, spatial(8, 4)>
  %zero = arith.constant 0.0 : f32
  %none = lowlp.splat %zero : f32 -> !lowlp.tile<8x4xf32, spatial(8, 4)>
  %t = lowlp.add_lookups %codes in %s[%c0], %none : !lowlp.tile<8x4xui16, spatial(8, 4)>, !lowlp.shared<200x4xf32>,
    !lowlp.tile<8x4xf32, spatial(8, 4)>
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !lowlp.tile<8x4xf32, spatial(8, 4)>, !lowlp.global<8x4xf32>
  lowlp.return
}
