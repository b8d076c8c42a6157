// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Nothing is left of a transposition between a load and a store.
// CHECK-LABEL: gpu.func @transpose
// CHECK: %[[X:.*]] = scf.if
// CHECK-NOT: vector.
// CHECK-NOT: gpu.shuffle
// CHECK: simt.store
!in = !lowlp.tile<8x4xf32, spatial(8, 4)>
!out = !lowlp.tile<4x8xf32, column_spatial(4, 8)>
lowlp.kernel @transpose(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<f32>, %n: i32)
    attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %m = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [%m, 4] : !lowlp.ptr<f32> -> !lowlp.global<?x4xf32>
  %w = lowlp.view_global %q shape [4, 8] : !lowlp.ptr<f32> -> !lowlp.global<4x8xf32>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<?x4xf32> -> !in
  %y = lowlp.transpose %x [1, 0] : !in -> !out
  lowlp.store_global %y, %w[%c0, %c0] : !out, !lowlp.global<4x8xf32>
  lowlp.return
}
