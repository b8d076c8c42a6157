// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!f16 = !lowlp.tile<128xf16, spatial(64).local(2)>
!bits = !lowlp.tile<128xui1, spatial(64).local(2)>
!words = !lowlp.tile<2x2xui32, spatial(2, 1).reduce(spatial(1, 32), dims=[1], keep_dims=True).local(1, 2)>

// CHECK-LABEL: func.func @warp
func.func @warp(%x: !f16, %c: !bits, %lane: index) -> (!f16, !words) {
  // CHECK: lowlp.warp_shuffle xor %{{.*}}, %{{.*}} : !lowlp.tile<128xf16, spatial(64).local(2)>
  %0 = lowlp.warp_shuffle xor %x, %lane : !f16
  // CHECK: lowlp.warp_shuffle up
  %1 = lowlp.warp_shuffle up %0, %lane : !f16
  // CHECK: lowlp.warp_shuffle down
  %2 = lowlp.warp_shuffle down %1, %lane : !f16
  // CHECK: lowlp.warp_shuffle idx
  %3 = lowlp.warp_shuffle idx %2, %lane : !f16
  // CHECK: lowlp.ballot %{{.*}} : !lowlp.tile<128xui1, spatial(64).local(2)> -> !lowlp.tile<2x2xui32,
  %4 = lowlp.ballot %c : !bits -> !words
  return %3, %4 : !f16, !words
}
