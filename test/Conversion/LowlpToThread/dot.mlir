// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Products as matrix instructions. a comes from f16 memory, b from codes: activations are not weights.

!a1 = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!q1 = !lowlp.tile<16x8xsi6, local(2, 1).column_spatial(4, 8).local(2, 1)>
!b1 = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!c1 = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @one
// CHECK: %[[C:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
// CHECK: %[[D:.*]] = simt.mma %{{.*}}, %{{.*}}, %[[C]] : vector<8xf16>, vector<4xf16>, vector<4xf32>
// CHECK-NOT: simt.mma
// CHECK: gpu.return
lowlp.kernel @one(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<si6>, %pc: !lowlp.ptr<f32>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %vb = lowlp.view_global %pb shape [16, 8] : !lowlp.ptr<si6> -> !lowlp.global<16x8xsi6>
  %vc = lowlp.view_global %pc shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x16xf16> -> !a1
  %q = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<16x8xsi6> -> !q1
  %b = lowlp.cast %q : !q1 -> !b1
  %c = lowlp.splat %x : f32 -> !c1
  %d = lowlp.dot %a, %b, %c : !a1, !b1, !c1
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !c1, !lowlp.global<16x8xf32>
  lowlp.return
}

// Two steps of k for each of two fragments of c along n: for each, k = 0 first, whose sum the second step takes.
!a2 = !lowlp.tile<16x32xbf16, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b2 = !lowlp.tile<32x16xbf16, local(2, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c2 = !lowlp.tile<16x16xf32, local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @k_and_n
// CHECK-DAG: %[[A0:.*]] = vector.extract_strided_slice %[[A:.*]] {offsets = [0], sizes = [8], strides = [1]} : vector<16xbf16> to vector<8xbf16>
// CHECK-DAG: %[[B0:.*]] = vector.extract_strided_slice %[[B:.*]] {offsets = [0], sizes = [4], strides = [1]} : vector<16xbf16> to vector<4xbf16>
// CHECK: %[[S0:.*]] = simt.mma %[[A0]], %[[B0]], %{{.*}} : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
// CHECK: %[[A1:.*]] = vector.extract_strided_slice %[[A]] {offsets = [8],
// CHECK: %[[B2:.*]] = vector.extract_strided_slice %[[B]] {offsets = [8],
// CHECK: %[[S1:.*]] = simt.mma %[[A1]], %[[B2]], %[[S0]]
// CHECK: %[[B1:.*]] = vector.extract_strided_slice %[[B]] {offsets = [4],
// CHECK: %[[T0:.*]] = simt.mma %[[A0]], %[[B1]], %{{.*}}
// CHECK: %[[B3:.*]] = vector.extract_strided_slice %[[B]] {offsets = [12],
// CHECK: simt.mma %[[A1]], %[[B3]], %[[T0]]
// CHECK-NOT: simt.mma
// CHECK: gpu.return
lowlp.kernel @k_and_n(%pa: !lowlp.ptr<bf16>, %pb: !lowlp.ptr<bf16>, %pc: !lowlp.ptr<f32>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 32] : !lowlp.ptr<bf16> -> !lowlp.global<16x32xbf16>
  %vb = lowlp.view_global %pb shape [32, 16] : !lowlp.ptr<bf16> -> !lowlp.global<32x16xbf16>
  %vc = lowlp.view_global %pc shape [16, 16] : !lowlp.ptr<f32> -> !lowlp.global<16x16xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x32xbf16> -> !a2
  %b = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<32x16xbf16> -> !b2
  %c = lowlp.splat %x : f32 -> !c2
  %d = lowlp.dot %a, %b, %c : !a2, !b2, !c2
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !c2, !lowlp.global<16x16xf32>
  lowlp.return
}

// Two warps side by side along n: both hold all of a, and each its own half of b and c. One instruction a thread.
!a3 = !lowlp.tile<16x16xf16, reduce(spatial(2, 1), dims=[0], keep_dims=True).column_local(2, 2).spatial(8, 4).local(1, 2)>
!q3 = !lowlp.tile<16x16xui4, spatial(1, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!b3 = !lowlp.tile<16x16xf16, spatial(1, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c3 = !lowlp.tile<16x16xf32, spatial(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @two_warps
// CHECK-COUNT-1: simt.mma %{{.*}} : vector<8xf16>, vector<4xf16>, vector<4xf32>
// CHECK-NOT: simt.mma
// CHECK: gpu.return
lowlp.kernel @two_warps(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<ui4>, %pc: !lowlp.ptr<f32>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %vb = lowlp.view_global %pb shape [16, 16] : !lowlp.ptr<ui4> -> !lowlp.global<16x16xui4>
  %vc = lowlp.view_global %pc shape [16, 16] : !lowlp.ptr<f32> -> !lowlp.global<16x16xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x16xf16> -> !a3
  %q = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<16x16xui4> -> !q3
  %b = lowlp.cast %q : !q3 -> !b3
  %c = lowlp.splat %x : f32 -> !c3
  %d = lowlp.dot %a, %b, %c : !a3, !b3, !c3
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !c3, !lowlp.global<16x16xf32>
  lowlp.return
}

// Registers in another order, row by row: they are gathered for a; c has the two halves of its fragments apart.
!a4 = !lowlp.tile<16x16xf16, local(2, 2).spatial(8, 4).local(1, 2)>
!b4 = !lowlp.tile<16x16xf16, local(2, 2).column_spatial(4, 8).local(2, 1)>
!c4 = !lowlp.tile<16x16xf32, local(2, 2).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @another_order
// CHECK-DAG: %[[A:.*]] = vector.shuffle %[[ALL:.*]], %[[ALL]] [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xf16>, vector<8xf16>
// CHECK-DAG: %[[B:.*]] = vector.shuffle %[[BS:.*]], %[[BS]] [0, 1, 4, 5] : vector<8xf16>, vector<8xf16>
// CHECK-DAG: %[[C:.*]] = vector.shuffle %[[CS:.*]], %[[CS]] [0, 1, 4, 5] : vector<8xf32>, vector<8xf32>
// CHECK: %[[D:.*]] = simt.mma %[[A]], %[[B]], %[[C]]
// CHECK: vector.insert_strided_slice %{{.*}} {offsets = [0],
// CHECK: vector.insert_strided_slice %{{.*}} {offsets = [4],
// CHECK: simt.mma %[[A]],
// CHECK-NOT: simt.mma
lowlp.kernel @another_order(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<f16>, %pc: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %vc = lowlp.view_global %pc shape [16, 16] : !lowlp.ptr<f32> -> !lowlp.global<16x16xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x16xf16> -> !a4
  %b = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x16xf16> -> !b4
  %c = lowlp.load_global %vc[%c0, %c0] in_bounds : !lowlp.global<16x16xf32> -> !c4
  %d = lowlp.dot %a, %b, %c : !a4, !b4, !c4
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !c4, !lowlp.global<16x16xf32>
  lowlp.return
}

// Elements of 8 bits: 4 in a register, whose words stay packed.
!a5 = !lowlp.tile<16x32xf8E4M3FN, column_local(2, 2).spatial(8, 4).local(1, 4)>
!b5 = !lowlp.tile<32x8xf8E5M2, local(2, 1).column_spatial(4, 8).local(4, 1)>
!c5 = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @small_floats
// CHECK: simt.mma %{{.*}} as f8E4M3FN, %{{.*}} as f8E5M2, %{{.*}} : vector<4xi32>, vector<2xi32>, vector<4xf32>
lowlp.kernel @small_floats(%pa: !lowlp.ptr<f8E4M3FN>, %pb: !lowlp.ptr<f8E5M2>, %pc: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 32] : !lowlp.ptr<f8E4M3FN> -> !lowlp.global<16x32xf8E4M3FN>
  %vb = lowlp.view_global %pb shape [32, 8] : !lowlp.ptr<f8E5M2> -> !lowlp.global<32x8xf8E5M2>
  %vc = lowlp.view_global %pc shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x32xf8E4M3FN> -> !a5
  %b = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<32x8xf8E5M2> -> !b5
  %c = lowlp.load_global %vc[%c0, %c0] in_bounds : !lowlp.global<16x8xf32> -> !c5
  %d = lowlp.dot %a, %b, %c : !a5, !b5, !c5
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !c5, !lowlp.global<16x8xf32>
  lowlp.return
}

// Two slices of K: each of two warps has all rows and its half of K, and so one instruction; the program adds the sums.
!a_slices = !lowlp.tile<16x32xf16, column_spatial(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b_slices = !lowlp.tile<32x8xbf16, spatial(2, 1).local(2, 1).column_spatial(4, 8).local(2, 1)>
!w_slices = !lowlp.tile<32x8xf16, spatial(2, 1).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c_slices = !lowlp.tile<32x8xf32, spatial(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @slices
// CHECK: simt.mma %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf16>, vector<4xf16>, vector<4xf32>
// CHECK-NOT: simt.mma
// CHECK: gpu.return
lowlp.kernel @slices(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<bf16>, %pc: !lowlp.ptr<f32>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 32] : !lowlp.ptr<f16> -> !lowlp.global<16x32xf16>
  %vb = lowlp.view_global %pb shape [32, 8] : !lowlp.ptr<bf16> -> !lowlp.global<32x8xbf16>
  %vc = lowlp.view_global %pc shape [32, 8] : !lowlp.ptr<f32> -> !lowlp.global<32x8xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x32xf16> -> !a_slices
  %w = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<32x8xbf16> -> !b_slices
  %b = lowlp.cast %w : !b_slices -> !w_slices
  %c = lowlp.splat %x : f32 -> !c_slices
  %d = lowlp.dot %a, %b, %c : !a_slices, !w_slices, !c_slices
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !c_slices, !lowlp.global<32x8xf32>
  lowlp.return
}

// Eight values of K side by side in a lane, in both operands: registers 0 and 1 of each row of a, with 0 and 1 of b, are the
// fragments of one step, and the other two those of the next.
!av = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!qv = !lowlp.tile<32x8xsi8, column_spatial(4, 8).local(8, 1)>
!bv = !lowlp.tile<32x8xf16, column_spatial(4, 8).local(8, 1)>
!cv = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @vectors
// CHECK: %[[A0:.*]] = vector.shuffle %[[A:.*]], %[[A]] [0, 1, 8, 9, 2, 3, 10, 11] : vector<16xf16>
// CHECK: %[[B0:.*]] = vector.extract_strided_slice %[[B:.*]] {offsets = [0], sizes = [4], strides = [1]} : vector<8xf16> to vector<4xf16>
// CHECK: %[[S0:.*]] = simt.mma %[[A0]], %[[B0]], %{{.*}} : vector<8xf16>, vector<4xf16>, vector<4xf32>
// CHECK: %[[A1:.*]] = vector.shuffle %[[A]], %[[A]] [4, 5, 12, 13, 6, 7, 14, 15] : vector<16xf16>
// CHECK: %[[B1:.*]] = vector.extract_strided_slice %[[B]] {offsets = [4], sizes = [4], strides = [1]} : vector<8xf16> to vector<4xf16>
// CHECK: simt.mma %[[A1]], %[[B1]], %[[S0]]
lowlp.kernel @vectors(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<si8>, %pc: !lowlp.ptr<f32>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %va = lowlp.view_global %pa shape [16, 32] : !lowlp.ptr<f16> -> !lowlp.global<16x32xf16>
  %vb = lowlp.view_global %pb shape [32, 8] : !lowlp.ptr<si8> -> !lowlp.global<32x8xsi8>
  %vc = lowlp.view_global %pc shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x32xf16> -> !av
  %q = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<32x8xsi8> -> !qv
  %b = lowlp.cast %q : !qv -> !bv
  %c = lowlp.splat %x : f32 -> !cv
  %d = lowlp.dot %a, %b, %c : !av, !bv, !cv
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !cv, !lowlp.global<16x8xf32>
  lowlp.return
}

// Bits: 384 of K are three instructions of 128, two registers of a and one of b each; 512 are two of 256.
!words_a = !lowlp.tile<3x32x2xui32, local(3, 1, 1).spatial(1, 32, 1).local(1, 1, 2)>
!bits_a = !lowlp.tile<16x384xui1, local(1, 3).local(2, 1).spatial(8, 4).local(1, 32)>
!words_b = !lowlp.tile<3x32xui32, local(3, 1).spatial(1, 32)>
!bits_b = !lowlp.tile<384x8xui1, local(3, 1).column_spatial(4, 8).local(32, 1)>
!bits_c = !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @half_bits
// CHECK: %[[A0:.*]] = vector.extract_strided_slice %[[A:.*]] {offsets = [0], sizes = [2], strides = [1]} : vector<6xi32> to vector<2xi32>
// CHECK: %[[B0:.*]] = vector.extract_strided_slice %[[B:.*]] {offsets = [0], sizes = [1], strides = [1]} : vector<3xi32> to vector<1xi32>
// CHECK: %[[S0:.*]] = simt.mma %[[A0]] as ui1, %[[B0]] as ui1, %{{.*}} : vector<2xi32>, vector<1xi32>, vector<4xi32>
// CHECK: %[[A1:.*]] = vector.extract_strided_slice %[[A]] {offsets = [2],
// CHECK: %[[S1:.*]] = simt.mma %[[A1]] as ui1, %{{.*}} as ui1, %[[S0]]
// CHECK: simt.mma %{{.*}} as ui1, %{{.*}} as ui1, %[[S1]]
// CHECK-NOT: simt.mma
// CHECK: gpu.return
lowlp.kernel @half_bits(%pa: !lowlp.ptr<ui32>, %pc: !lowlp.ptr<si32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %va = lowlp.view_global %pa shape [3, 32, 2] : !lowlp.ptr<ui32> -> !lowlp.global<3x32x2xui32>
  %vb = lowlp.view_global %pa shape [3, 32] : !lowlp.ptr<ui32> -> !lowlp.global<3x32xui32>
  %vc = lowlp.view_global %pc shape [16, 8] : !lowlp.ptr<si32> -> !lowlp.global<16x8xsi32>
  %wa = lowlp.load_global %va[%c0, %c0, %c0] in_bounds : !lowlp.global<3x32x2xui32> -> !words_a
  %wb = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<3x32xui32> -> !words_b
  %a = lowlp.view %wa : !words_a -> !bits_a
  %b = lowlp.view %wb : !words_b -> !bits_b
  %c = lowlp.splat %zero : i32 -> !bits_c
  %d = lowlp.dot %a, %b, %c : !bits_a, !bits_b, !bits_c
  lowlp.store_global %d, %vc[%c0, %c0] in_bounds : !bits_c, !lowlp.global<16x8xsi32>
  lowlp.return
}
