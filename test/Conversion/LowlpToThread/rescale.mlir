// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// A warp that has no factor but 1 goes around the products; NaN is another factor.
// CHECK-LABEL: gpu.func @rescaled
// CHECK: %[[OTHERS:.*]] = arith.cmpf une, %[[FACTORS:.*]], %{{.*}} : vector<2xf32>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[OTHERS]] : vector<2xi1> into i1
// CHECK: %[[VOTES:.*]] = simt.ballot %[[ANY]]
// CHECK: %[[SCALED:.*]] = arith.cmpi ne, %[[VOTES]], %c0_i32 : i32
// CHECK: %[[RESULT:.*]] = scf.if %[[SCALED]] -> (vector<4xf32>)
// CHECK:   %[[REPEATED:.*]] = vector.shuffle %[[FACTORS]], %[[FACTORS]] [0, 0, 1, 1]
// CHECK:   %[[PRODUCT:.*]] = arith.mulf %[[VALUES:.*]], %[[REPEATED]] : vector<4xf32>
// CHECK:   scf.yield %[[PRODUCT]]
// CHECK: else
// CHECK:   scf.yield %[[VALUES]]
!tile = !lowlp.tile<64x2xf32, local(2, 1).spatial(32, 1).local(1, 2)>
!column = !lowlp.tile<64x1xf32, local(2, 1).spatial(32, 1)>
lowlp.kernel @rescaled(%p: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64, 2] : !lowlp.ptr<f32> -> !lowlp.global<64x2xf32>
  %x = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<64x2xf32> -> !tile
  %f = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<64x2xf32> -> !column
  %y = lowlp.rescale %x, %f : !tile, !column
  lowlp.store_global %y, %v[%c0, %c0] in_bounds : !tile, !lowlp.global<64x2xf32>
  lowlp.return
}
