// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// CHECK-LABEL: gpu.func @exact
// What is exact stays in the type of the tile.
// CHECK: %[[MIN:.*]] = arith.minimumf %{{.*}}, %{{.*}} : vector<3xbf16>
// CHECK: %[[MAX:.*]] = arith.maximumf %[[MIN]], %{{.*}} : vector<3xbf16>
// CHECK: math.absf %[[MAX]] : vector<3xbf16>
// CHECK-NOT: arith.extf
!bf16 = !lowlp.tile<96xbf16, local(3).spatial(32)>
lowlp.kernel @exact(%p: !lowlp.ptr<bf16>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<bf16> -> !lowlp.global<96xbf16>
  %w = lowlp.view_global %q shape [96] : !lowlp.ptr<bf16> -> !lowlp.global<96xbf16>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<96xbf16> -> !bf16
  %b = lowlp.load_global %w[%c0] : !lowlp.global<96xbf16> -> !bf16
  %min = lowlp.minimum %a, %b : !bf16
  %max = lowlp.maximum %min, %b : !bf16
  %abs = lowlp.abs %max : !bf16
  lowlp.store_global %abs, %v[%c0] : !bf16, !lowlp.global<96xbf16>
  lowlp.return
}

// CHECK-LABEL: gpu.func @rounded_once
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[Y:.*]] = math.exp2 %[[X]] fastmath<afn> : f32
// CHECK: arith.truncf %[[Y]] : f32 to f16
// CHECK: math.log2 %{{.*}} : f32
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: math.rsqrt %{{.*}} : f32
!f16 = !lowlp.tile<32xf16, spatial(32)>
lowlp.kernel @rounded_once(%p: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<32xf16> -> !f16
  %b = lowlp.exp2 %a : !f16
  %c = lowlp.log2 %b : !f16
  %d = lowlp.sqrt %c : !f16
  %e = lowlp.rsqrt %d : !f16
  lowlp.store_global %e, %v[%c0] : !f16, !lowlp.global<32xf16>
  lowlp.return
}

// The product is rounded; what that lost is made good after the power.
// CHECK-LABEL: gpu.func @exp
// CHECK: %[[X:.*]] = arith.maximumf %{{.*}}, %{{.*}} : f32
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[LOG2E:.*]] : f32
// CHECK: %[[MINUS_P:.*]] = arith.negf %[[P]] : f32
// CHECK: %[[HIGH:.*]] = math.fma %[[X]], %[[LOG2E]], %[[MINUS_P]] : f32
// CHECK: %[[R:.*]] = math.fma %[[X]], %{{.*}}, %[[HIGH]] : f32
// CHECK: %[[POWER:.*]] = math.exp2 %[[P]] : f32
// CHECK: %[[FACTOR:.*]] = arith.mulf %[[R]], %{{.*}} : f32
// CHECK: %[[CORRECTED:.*]] = math.fma %[[POWER]], %[[FACTOR]], %[[POWER]] : f32
// CHECK: %[[FINITE:.*]] = arith.cmpf olt, %[[POWER]], %{{.*}} : f32
// CHECK: arith.select %[[FINITE]], %[[CORRECTED]], %[[POWER]] : f32
!f32 = !lowlp.tile<32xf32, spatial(32)>
lowlp.kernel @exp(%p: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<32xf32> -> !f32
  %b = lowlp.exp %a : !f32
  lowlp.store_global %b, %v[%c0] : !f32, !lowlp.global<32xf32>
  lowlp.return
}

// CHECK-LABEL: gpu.func @tanh
// CHECK: %[[MAGNITUDE:.*]] = math.absf %[[X:.*]] : f32
// CHECK-COUNT-5: math.fma
// CHECK: math.exp2
// CHECK: %[[QUOTIENT:.*]] = arith.divf
// CHECK: arith.subf %{{.*}}, %[[QUOTIENT]] : f32
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %[[MAGNITUDE]], %{{.*}} : f32
// CHECK: %[[RESULT:.*]] = arith.select %[[SMALL]]
// CHECK: math.copysign %[[RESULT]], %[[X]] : f32
lowlp.kernel @tanh(%p: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<32xf32> -> !f32
  %b = lowlp.tanh %a : !f32
  lowlp.store_global %b, %v[%c0] : !f32, !lowlp.global<32xf32>
  lowlp.return
}

// CHECK-LABEL: gpu.func @fma
// CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<1xf32>
lowlp.kernel @fma(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<32xf32> -> !f32
  %b = lowlp.fma %a, %a, %a : !f32
  lowlp.store_global %b, %v[%c0] : !f32, !lowlp.global<32xf32>
  lowlp.return
}
