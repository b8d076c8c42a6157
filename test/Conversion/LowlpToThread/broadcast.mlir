// RUN: lowlp-opt %s --lowlp-convert-to-thread | FileCheck %s

// CHECK-LABEL: gpu.func @floats
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 0, 1, 1] : vector<2xf32>
!rows = !lowlp.tile<16x1xf32, reduce(local(2, 1).spatial(8, 4).local(1, 2), dims=[1], keep_dims=True)>
!tile = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @floats(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [16, 1] : !lowlp.ptr<f32> -> !lowlp.global<16x1xf32>
  %w = lowlp.view_global %q shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<16x1xf32> -> !rows
  %y = lowlp.broadcast %x : !rows -> !tile
  lowlp.store_global %y, %w[%c0, %c0] : !tile, !lowlp.global<16x8xf32>
  lowlp.return
}

// A thread's byte goes into all bytes of its word.
// CHECK-LABEL: gpu.func @codes
// CHECK: %[[WORD:.*]] = vector.extract %{{.*}}[0] : i32 from vector<1xi32>
// CHECK: %[[FIRST:.*]] = arith.andi %[[WORD]], %{{.*}} : i32
// CHECK: %[[SECOND:.*]] = arith.andi %[[WORD]], %{{.*}} : i32
// CHECK: %[[UP:.*]] = arith.shli %[[SECOND]], %{{.*}} : i32
// CHECK: arith.ori %[[FIRST]], %[[UP]] : i32
!byte = !lowlp.tile<32x1xui8, spatial(32, 1)>
!bytes = !lowlp.tile<32x2xui8, spatial(32, 1).local(1, 2)>
lowlp.kernel @codes(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 1] : !lowlp.ptr<ui8> -> !lowlp.global<32x1xui8>
  %w = lowlp.view_global %q shape [32, 2] : !lowlp.ptr<ui8> -> !lowlp.global<32x2xui8>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x1xui8> -> !byte
  %y = lowlp.broadcast %x : !byte -> !bytes
  lowlp.store_global %y, %w[%c0, %c0] : !bytes, !lowlp.global<32x2xui8>
  lowlp.return
}
