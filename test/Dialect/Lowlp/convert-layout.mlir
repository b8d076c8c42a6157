// RUN: lowlp-opt %s | lowlp-opt | FileCheck %s
// RUN: lowlp-opt %s --canonicalize | FileCheck %s --check-prefix=FOLDED

// CHECK-LABEL: lowlp.kernel @convert
// CHECK: lowlp.convert_layout %{{.*}} : !lowlp.tile<8x4xsi6, spatial(8, 4)> -> !lowlp.tile<8x4xsi6, column_spatial(8, 4)>
// CHECK: lowlp.alloc_shared at 32 : !lowlp.shared<8xf32>
// CHECK: lowlp.alloc_shared at 0 scratch : !lowlp.shared<8xf32>
// CHECK: lowlp.alloc_shared scratch : !lowlp.shared<8xf32>
lowlp.kernel @convert(%p: !lowlp.ptr<si6>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [8, 4] : !lowlp.ptr<si6> -> !lowlp.global<8x4xsi6>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<8x4xsi6> -> !lowlp.tile<8x4xsi6, spatial(8, 4)>
  %y = lowlp.convert_layout %x : !lowlp.tile<8x4xsi6, spatial(8, 4)> -> !lowlp.tile<8x4xsi6, column_spatial(8, 4)>
  lowlp.store_global %y, %v[%c0, %c0] : !lowlp.tile<8x4xsi6, column_spatial(8, 4)>, !lowlp.global<8x4xsi6>
  %a = lowlp.alloc_shared at 32 : !lowlp.shared<8xf32>
  %b = lowlp.alloc_shared at 0 scratch : !lowlp.shared<8xf32>
  %c = lowlp.alloc_shared scratch : !lowlp.shared<8xf32>
  lowlp.return
}

// A conversion to the same layout is none.
// FOLDED-LABEL: lowlp.kernel @nothing
// FOLDED-NOT: convert_layout
// FOLDED: lowlp.return
lowlp.kernel @nothing(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %x = lowlp.load_global %v[%c0] : !lowlp.global<32xf32> -> !lowlp.tile<32xf32, spatial(32)>
  %y = lowlp.convert_layout %x : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32xf32, spatial(4).spatial(8)>
  lowlp.store_global %y, %v[%c0] : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  lowlp.return
}
