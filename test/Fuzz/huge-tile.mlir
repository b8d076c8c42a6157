// A tile with very many elements in each thread was compiled for hours, or until memory ran out.
// RUN: not lowlp-opt %s --lowlp-to-thread 2>&1 | FileCheck %s
// CHECK: huge-tile.mlir:10:8: error: 'lowlp.load_global' op gives each thread 1048576 elements; at most 8192 are allowed

!tile = !lowlp.tile<33554432xf32, local(1048576).spatial(32)>

lowlp.kernel @copy(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %v = lowlp.view_global %p shape [33554432] : !lowlp.ptr<f32> -> !lowlp.global<33554432xf32>
  %z = arith.constant 0 : index
  %t = lowlp.load_global %v[%z] : !lowlp.global<33554432xf32> -> !tile
  lowlp.store_global %t, %v[%z] : !tile, !lowlp.global<33554432xf32>
  lowlp.return
}
