// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Three halves are two words, the second padded.
// CHECK-LABEL: gpu.func @shuffles
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[INDEX:.*]], %c32 : index
// CHECK: simt.assert %[[EXISTS]], "a lane must be from 0 to 31"
// CHECK: vector.bitcast %{{.*}} : vector<4xf16> to vector<2xi32>
// CHECK-COUNT-2: gpu.shuffle up %{{.*}}, %arg1, %c32_i32 : i32
// CHECK: vector.bitcast %{{.*}} : vector<2xi32> to vector<4xf16>
!f16 = !lowlp.tile<96xf16, spatial(32).local(3)>
lowlp.kernel @shuffles(%p: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %lane = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<f16> -> !lowlp.global<96xf16>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<96xf16> -> !f16
  %b = lowlp.warp_shuffle up %a, %lane : !f16
  lowlp.store_global %b, %v[%c0] in_bounds : !f16, !lowlp.global<96xf16>
  lowlp.return
}

// CHECK-LABEL: gpu.func @modes
// CHECK: gpu.shuffle xor %{{.*}}, %c1_i32, %c32_i32 : i32
// CHECK: gpu.shuffle down %{{.*}}, %c1_i32, %c32_i32 : i32
// CHECK: gpu.shuffle idx %{{.*}}, %c1_i32, %c32_i32 : i32
!codes = !lowlp.tile<96xui6, spatial(32).local(3)>
lowlp.kernel @modes(%p: !lowlp.ptr<ui6>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<ui6> -> !lowlp.global<96xui6>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<96xui6> -> !codes
  %b = lowlp.warp_shuffle xor %a, %c1 : !codes
  %c = lowlp.warp_shuffle down %b, %c1 : !codes
  %d = lowlp.warp_shuffle idx %c, %c1 : !codes
  lowlp.store_global %d, %v[%c0] in_bounds : !codes, !lowlp.global<96xui6>
  lowlp.return
}

// One ballot for each register.
// CHECK-LABEL: gpu.func @ballot
// CHECK: %[[FIRST:.*]] = arith.trunci %{{.*}} : i32 to i1
// CHECK: %[[A:.*]] = simt.ballot %[[FIRST]]
// CHECK: %[[SECOND:.*]] = arith.trunci %{{.*}} : i32 to i1
// CHECK: %[[B:.*]] = simt.ballot %[[SECOND]]
// CHECK: simt.store %{{.*}} : vector<2xi32>
!bits = !lowlp.tile<64xui1, spatial(32).local(2)>
!words = !lowlp.tile<1x2xui32, reduce(spatial(1, 32), dims=[1], keep_dims=True).local(1, 2)>
lowlp.kernel @ballot(%p: !lowlp.ptr<ui1>, %q: !lowlp.ptr<ui32> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui1> -> !lowlp.global<64xui1>
  %w = lowlp.view_global %q shape [1, 2] : !lowlp.ptr<ui32> -> !lowlp.global<1x2xui32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui1> -> !bits
  %b = lowlp.ballot %a : !bits -> !words
  lowlp.store_global %b, %w[%c0, %c0] in_bounds : !words, !lowlp.global<1x2xui32>
  lowlp.return
}
