// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!f32 = !lowlp.tile<64xf32, spatial(32).local(2)>
// CHECK-LABEL: gpu.func @f32
// CHECK-SAME: %[[X:[a-z0-9]+]]: f32, %[[Y:[a-z0-9]+]]: f32
// CHECK-DAG: %[[A:.*]] = vector.broadcast %[[X]] : f32 to vector<2xf32>
// CHECK-DAG: %[[B:.*]] = vector.broadcast %[[Y]] : f32 to vector<2xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : vector<2xf32>
// CHECK: %[[DIFF:.*]] = arith.subf %[[SUM]], %[[A]] : vector<2xf32>
// CHECK: %[[PROD:.*]] = arith.mulf %[[DIFF]], %[[B]] : vector<2xf32>
// CHECK: %[[QUOT:.*]] = arith.divf %[[PROD]], %[[A]] : vector<2xf32>
// CHECK: arith.negf %[[QUOT]] : vector<2xf32>
lowlp.kernel @f32(%p: !lowlp.ptr<f32>, %x: f32, %y: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %a = lowlp.splat %x : f32 -> !f32
  %b = lowlp.splat %y : f32 -> !f32
  %sum = lowlp.add %a, %b : !f32
  %difference = lowlp.sub %sum, %a : !f32
  %product = lowlp.mul %difference, %b : !f32
  %quotient = lowlp.div %product, %a : !f32
  %negative = lowlp.neg %quotient : !f32
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  lowlp.store_global %negative, %v[%c0] : !f32, !lowlp.global<64xf32>
  lowlp.return
}

// Arithmetic stays in the type of the tile.
!bf16 = !lowlp.tile<96xbf16, local(3).spatial(32)>
// CHECK-LABEL: gpu.func @bf16
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<3xbf16>
// CHECK-NOT: arith.extf
lowlp.kernel @bf16(%p: !lowlp.ptr<bf16>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<bf16> -> !lowlp.global<96xbf16>
  %w = lowlp.view_global %q shape [96] : !lowlp.ptr<bf16> -> !lowlp.global<96xbf16>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<96xbf16> -> !bf16
  %b = lowlp.load_global %w[%c0] : !lowlp.global<96xbf16> -> !bf16
  %c = lowlp.mul %a, %b : !bf16
  lowlp.store_global %c, %v[%c0] : !bf16, !lowlp.global<96xbf16>
  lowlp.return
}
