// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// One plane takes one word of each pair in each step: 4, 2 and 1 of them.
// CHECK-LABEL: gpu.func @one
// CHECK: %[[LOW:.*]] = simt.load
// CHECK: %[[HIGH:.*]] = simt.load
// CHECK-DAG: %[[FIRST:.*]] = vector.extract %[[LOW]][0]
// CHECK-DAG: %[[FIFTH:.*]] = vector.extract %[[HIGH]][0]
// CHECK-DAG: %[[MOVED:.*]] = arith.shli %[[FIFTH]], %c4_i32
// CHECK-DAG: %[[KEPT:.*]] = arith.andi %[[FIRST]], %c252645135_i32
// CHECK-DAG: %[[ADDED:.*]] = arith.andi %[[MOVED]], %c-252645136_i32
// CHECK: arith.ori %[[KEPT]], %[[ADDED]]
// CHECK-COUNT-6: arith.ori
// CHECK-NOT: arith.ori
// CHECK: simt.store
lowlp.kernel @one(%p: !lowlp.ptr<ui8> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 32] : !lowlp.ptr<ui8> -> !lowlp.global<32x32xui8>
  %w = lowlp.view_global %q shape [1, 32] : !lowlp.ptr<ui32> -> !lowlp.global<1x32xui32>
  %c = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<32x32xui8> -> !lowlp.tile<32x32xui8, spatial(32, 1).local(1, 32)>
  %e = lowlp.encode %c : !lowlp.tile<32x32xui8, spatial(32, 1).local(1, 32)> -> !lowlp.tile<1x32xui32, spatial(1, 32)>
  lowlp.store_global %e, %w[%c0, %c0] in_bounds : !lowlp.tile<1x32xui32, spatial(1, 32)>, !lowlp.global<1x32xui32>
  lowlp.return
}

// All 8 planes: 4 pairs in each of 3 steps, both words of each.
// CHECK-LABEL: gpu.func @all
// CHECK-COUNT-24: arith.ori
// CHECK-NOT: arith.ori
// CHECK: gpu.return
lowlp.kernel @all(%p: !lowlp.ptr<si8> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 32] : !lowlp.ptr<si8> -> !lowlp.global<32x32xsi8>
  %w = lowlp.view_global %q shape [8, 32] : !lowlp.ptr<ui32> -> !lowlp.global<8x32xui32>
  %c = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<32x32xsi8> -> !lowlp.tile<32x32xsi8, spatial(32, 1).local(1, 32)>
  %e = lowlp.encode %c : !lowlp.tile<32x32xsi8, spatial(32, 1).local(1, 32)> -> !lowlp.tile<8x32xui32, spatial(1, 32).local(8, 1)>
  lowlp.store_global %e, %w[%c0, %c0] in_bounds : !lowlp.tile<8x32xui32, spatial(1, 32).local(8, 1)>, !lowlp.global<8x32xui32>
  lowlp.return
}
