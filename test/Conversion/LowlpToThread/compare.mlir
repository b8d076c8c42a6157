// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// The condition is one word: the second element's bit stands next to the first one's.
// CHECK-LABEL: gpu.func @floats
// CHECK: %[[HOLDS:.*]] = arith.cmpf olt, %[[A:.*]], %[[B:.*]] : vector<2xf32>
// CHECK: %[[FIRST:.*]] = vector.extract %[[HOLDS]][0]
// CHECK: %[[BIT0:.*]] = arith.extui %[[FIRST]] : i1 to i32
// CHECK: %[[SECOND:.*]] = vector.extract %[[HOLDS]][1]
// CHECK: %[[BIT1:.*]] = arith.extui %[[SECOND]] : i1 to i32
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[BIT1]], %{{.*}} : i32
// CHECK: %[[WORD:.*]] = arith.ori %[[BIT0]], %[[SHIFTED]] : i32
// CHECK: %[[IS:.*]] = arith.trunci %{{.*}} : i32 to i1
// CHECK: arith.select %[[IS]], %{{.*}}, %{{.*}} : f32
!f32 = !lowlp.tile<64xf32, spatial(32).local(2)>
!bits = !lowlp.tile<64xui1, spatial(32).local(2)>
lowlp.kernel @floats(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<64xf32> -> !f32
  %b = lowlp.load_global %w[%c0] : !lowlp.global<64xf32> -> !f32
  %c = lowlp.compare lt %a, %b : !f32 -> !bits
  %r = lowlp.select %c, %a, %b : !bits, !f32
  lowlp.store_global %r, %v[%c0] : !f32, !lowlp.global<64xf32>
  lowlp.return
}

// NaN differs from everything, and nothing else holds of it. Codes are chosen as they are packed.
// CHECK-LABEL: gpu.func @codes
// CHECK: arith.cmpf oeq
// CHECK: arith.cmpf une
// CHECK: arith.cmpf ole
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf oge
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
!one = !lowlp.tile<32xf16, spatial(32)>
!bit = !lowlp.tile<32xui1, spatial(32)>
!code = !lowlp.tile<32xui8, spatial(32)>
lowlp.kernel @codes(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<64xf16> -> !one
  %b = lowlp.load_global %v[%c32] : !lowlp.global<64xf16> -> !one
  %x = lowlp.load_global %w[%c0] : !lowlp.global<64xui8> -> !code
  %y = lowlp.load_global %w[%c32] : !lowlp.global<64xui8> -> !code
  %eq = lowlp.compare eq %a, %b : !one -> !bit
  %ne = lowlp.compare ne %a, %b : !one -> !bit
  %le = lowlp.compare le %a, %b : !one -> !bit
  %gt = lowlp.compare gt %a, %b : !one -> !bit
  %ge = lowlp.compare ge %a, %b : !one -> !bit
  %0 = lowlp.select %eq, %x, %y : !bit, !code
  %1 = lowlp.select %ne, %0, %x : !bit, !code
  %2 = lowlp.select %le, %y, %1 : !bit, !code
  %3 = lowlp.select %gt, %x, %2 : !bit, !code
  %4 = lowlp.select %ge, %y, %3 : !bit, !code
  lowlp.store_global %4, %w[%c0] : !code, !lowlp.global<64xui8>
  lowlp.return
}
