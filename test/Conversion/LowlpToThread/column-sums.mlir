// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Sums of b along K are products with one number. Registers of b are operand a then, and the number is operand b.

// One fragment of 8 columns: each instruction takes two of the four steps, in the order of their registers. Its sums of the
// first and of the second half of each step, of which all threads of a row have the same, are added, and go to the threads
// that need them for two columns each.
!a = !lowlp.tile<32x64xf16, local(2, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<64x8xf16, local(4, 1).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<32x8xf32, local(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @one_fragment
// CHECK-DAG: %[[NUMBER:.*]] = arith.constant dense<1.000000e+00> : vector<4xf16>
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK: %[[FIRST:.*]] = vector.extract_strided_slice %[[B:.*]] {offsets = [0], sizes = [8], strides = [1]} : vector<16xf16>
// CHECK: %[[SUM:.*]] = simt.mma %[[FIRST]], %[[NUMBER]], %[[ZEROS]]
// CHECK: %[[SECOND:.*]] = vector.extract_strided_slice %[[B]] {offsets = [8], sizes = [8], strides = [1]}
// CHECK: %[[SUMS:.*]] = simt.mma %[[SECOND]], %[[NUMBER]], %[[SUM]]
// CHECK-NOT: simt.mma
// CHECK-DAG: %[[UPPER:.*]] = vector.extract %[[SUMS]][0]
// CHECK-DAG: %[[LOWER:.*]] = vector.extract %[[SUMS]][2]
// CHECK: %[[ALL:.*]] = arith.addf %[[UPPER]], %[[LOWER]] : f32
// CHECK: %[[MOVED:.*]], %{{.*}} = gpu.shuffle xor %[[ALL]], %c4
// CHECK: %[[LEFT:.*]], %{{.*}} = gpu.shuffle idx %[[ALL]], %[[LANE:.*]], %c32
// CHECK: %[[RIGHT:.*]], %{{.*}} = gpu.shuffle idx %[[MOVED]], %[[LANE]], %c32
// CHECK: simt.store %[[LEFT]],
// CHECK: simt.store %[[RIGHT]],
lowlp.kernel @one_fragment(%px: !lowlp.ptr<f16>, %py: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f32
  %vx = lowlp.view_global %px shape [64, 8] : !lowlp.ptr<f16> -> !lowlp.global<64x8xf16>
  %vy = lowlp.view_global %py shape [32, 8] : !lowlp.ptr<f32> -> !lowlp.global<32x8xf32>
  %ones = lowlp.splat %one : f16 -> !a
  %b = lowlp.load_global %vx[%c0, %c0] in_bounds : !lowlp.global<64x8xf16> -> !b
  %c = lowlp.splat %zero : f32 -> !c
  %d = lowlp.dot %ones, %b, %c : !a, !b, !c
  lowlp.store_global %d, %vy[%c0, %c0] in_bounds : !c, !lowlp.global<32x8xf32>
  lowlp.return
}

// Two fragments: each has sums of its own, so that those of a column are rounded as beside no other. What the product is
// added to is added after it.
!b2 = !lowlp.tile<64x16xf16, local(2, 2).local(2, 1).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c2 = !lowlp.tile<32x16xf32, local(2, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @two_fragments
// CHECK: %[[S0:.*]] = simt.mma %{{.*}}, %[[N:.*]], %[[Z:.*]] : vector<8xf16>, vector<4xf16>, vector<4xf32>
// CHECK: %[[S1:.*]] = simt.mma %{{.*}}, %[[N]], %[[S0]]
// CHECK: gpu.shuffle
// CHECK: %[[S2:.*]] = simt.mma %{{.*}}, %[[N]], %[[Z]]
// CHECK: simt.mma %{{.*}}, %[[N]], %[[S2]]
// CHECK-NOT: simt.mma
// CHECK-COUNT-8: arith.addf %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK-NOT: arith.addf
// CHECK: gpu.return
lowlp.kernel @two_fragments(%px: !lowlp.ptr<f16>, %py: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %vx = lowlp.view_global %px shape [64, 16] : !lowlp.ptr<f16> -> !lowlp.global<64x16xf16>
  %vy = lowlp.view_global %py shape [32, 16] : !lowlp.ptr<f32> -> !lowlp.global<32x16xf32>
  %ones = lowlp.splat %one : f16 -> !a
  %b = lowlp.load_global %vx[%c0, %c0] in_bounds : !lowlp.global<64x16xf16> -> !b2
  %c = lowlp.load_global %vy[%c0, %c0] in_bounds : !lowlp.global<32x16xf32> -> !c2
  %d = lowlp.dot %ones, %b, %c : !a, !b2, !c2
  lowlp.store_global %d, %vy[%c0, %c0] in_bounds : !c2, !lowlp.global<32x16xf32>
  lowlp.return
}

// Of one step nothing is saved.
!a1 = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!b1 = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!c1 = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @one_step
// CHECK: simt.mma
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
lowlp.kernel @one_step(%px: !lowlp.ptr<f16>, %py: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f32
  %vx = lowlp.view_global %px shape [16, 8] : !lowlp.ptr<f16> -> !lowlp.global<16x8xf16>
  %vy = lowlp.view_global %py shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %ones = lowlp.splat %one : f16 -> !a1
  %b = lowlp.load_global %vx[%c0, %c0] in_bounds : !lowlp.global<16x8xf16> -> !b1
  %c = lowlp.splat %zero : f32 -> !c1
  %d = lowlp.dot %ones, %b, %c : !a1, !b1, !c1
  lowlp.store_global %d, %vy[%c0, %c0] in_bounds : !c1, !lowlp.global<16x8xf32>
  lowlp.return
}
