// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Rows: two neighbours in a thread, then the lanes that differ by 1 and by 2.
// CHECK-LABEL: gpu.func @rows
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
// CHECK: %[[TOP:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: %[[BOTTOM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: %[[TOP1:.*]], %{{.*}} = gpu.shuffle xor %[[TOP]], %[[C1]], %[[C32]] : f32
// CHECK: %[[TOP2:.*]] = arith.addf %[[TOP]], %[[TOP1]] : f32
// CHECK: %[[BOTTOM1:.*]], %{{.*}} = gpu.shuffle xor %[[BOTTOM]], %[[C1]], %[[C32]] : f32
// CHECK: arith.addf %[[BOTTOM]], %[[BOTTOM1]] : f32
// CHECK: %[[TOP3:.*]], %{{.*}} = gpu.shuffle xor %[[TOP2]], %[[C2]], %[[C32]] : f32
// CHECK: arith.addf %[[TOP2]], %[[TOP3]] : f32
// CHECK: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
!tile = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!rows = !lowlp.tile<16x1xf32, reduce(local(2, 1).spatial(8, 4).local(1, 2), dims=[1], keep_dims=True)>
lowlp.kernel @rows(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %w = lowlp.view_global %q shape [16, 1] : !lowlp.ptr<f32> -> !lowlp.global<16x1xf32>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<16x8xf32> -> !tile
  %s = lowlp.reduce add %x dim 1 : !tile -> !rows
  lowlp.store_global %s, %w[%c0, %c0] : !rows, !lowlp.global<16x1xf32>
  lowlp.return
}

// Columns of f16, in f32: lanes that differ by 4, 8 and 16, one rounding at the end.
// CHECK-LABEL: gpu.func @columns
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i32
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: gpu.shuffle xor %[[X]], %[[C4]]
// CHECK: arith.maximumf
// CHECK: gpu.shuffle xor %{{.*}}, %[[C8]]
// CHECK: arith.maximumf
// CHECK: gpu.shuffle xor %{{.*}}, %[[C16]]
// CHECK: %[[MAX:.*]] = arith.maximumf
// CHECK: arith.truncf %[[MAX]] : f32 to f16
// CHECK: arith.minimumf
!half = !lowlp.tile<8x4xf16, spatial(8, 4)>
!columns = !lowlp.tile<4xf16, reduce(spatial(8, 4), dims=[0])>
lowlp.kernel @columns(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [8, 4] : !lowlp.ptr<f16> -> !lowlp.global<8x4xf16>
  %w = lowlp.view_global %q shape [4] : !lowlp.ptr<f16> -> !lowlp.global<4xf16>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<8x4xf16> -> !half
  %s = lowlp.reduce max %x dim 0 : !half -> !columns
  lowlp.store_global %s, %w[%c0] : !columns, !lowlp.global<4xf16>
  %t = lowlp.reduce min %x dim 0 : !half -> !columns
  lowlp.store_global %t, %w[%c0] : !columns, !lowlp.global<4xf16>
  lowlp.return
}
