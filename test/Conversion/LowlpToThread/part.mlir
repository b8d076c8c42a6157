// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// The last two of a thread's four elements; nobody needs the others.
// CHECK-LABEL: gpu.func @last_two
// CHECK: %[[AT:.*]] = arith.addi %[[FIRST:.*]], %c2 : index
// CHECK: %[[THIRD:.*]] = simt.load %arg0
// CHECK: arith.addi %[[FIRST]], %c3 : index
// CHECK: %[[FOURTH:.*]] = simt.load %arg0
// CHECK-NOT: simt.load
// CHECK-NOT: gpu.shuffle
// CHECK: simt.store %[[THIRD]]
// CHECK: simt.store %[[FOURTH]]
!whole = !lowlp.tile<8x16xf16, spatial(8, 4).local(1, 4)>
!parts = !lowlp.tile<2x8x8xf16, local(2, 1, 1).spatial(1, 8, 4).local(1, 1, 2)>
!half = !lowlp.tile<8x8xf16, spatial(8, 4).local(1, 2)>
lowlp.kernel @last_two(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [8, 16] : !lowlp.ptr<f16> -> !lowlp.global<8x16xf16>
  %w = lowlp.view_global %q shape [8, 8] : !lowlp.ptr<f16> -> !lowlp.global<8x8xf16>
  %x = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<8x16xf16> -> !whole
  %parts = lowlp.view %x : !whole -> !parts
  %last = lowlp.part %parts[1] : !parts -> !half
  lowlp.store_global %last, %w[%c0, %c0] in_bounds : !half, !lowlp.global<8x8xf16>
  lowlp.return
}

// Codes that fill no bytes are taken out of their words: the third and the fourth of 6 bits.
// CHECK-LABEL: gpu.func @codes
// CHECK-NOT: gpu.shuffle
// CHECK-DAG: arith.shrui %{{.*}}, %c12_i32
// CHECK-DAG: arith.shrui %{{.*}}, %c18_i32
lowlp.kernel @codes(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<ui8> -> !lowlp.global<96xui8>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<96xui8> -> !lowlp.tile<96xui8, local(3).spatial(32)>
  %codes = lowlp.view %x : !lowlp.tile<96xui8, local(3).spatial(32)> -> !lowlp.tile<2x64xui6, local(2, 1).spatial(1, 32).local(1, 2)>
  %part = lowlp.part %codes[1] : !lowlp.tile<2x64xui6, local(2, 1).spatial(1, 32).local(1, 2)> -> !lowlp.tile<64xui6, spatial(32).local(2)>
  %y = lowlp.cast %part : !lowlp.tile<64xui6, spatial(32).local(2)> -> !lowlp.tile<64xui8, spatial(32).local(2)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<64xui8, spatial(32).local(2)>, !lowlp.global<64xui8>
  lowlp.return
}
