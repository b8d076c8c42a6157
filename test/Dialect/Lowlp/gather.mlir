// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!tile = !lowlp.tile<16x8xf16, spatial(8, 4).local(2, 2)>
!rows = !lowlp.tile<16x1xsi32, reduce(spatial(8, 4), dims=[1], keep_dims=True).local(2, 1)>
!codes = !lowlp.tile<16x8xui4, spatial(8, 4).local(2, 2)>

// CHECK-LABEL: func.func @gather
func.func @gather(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<si32>, %rows: !rows, %s: !lowlp.shared<16xf16>, %codes: !codes) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64, 8] : !lowlp.ptr<f16> -> !lowlp.global<64x8xf16>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<si32> -> !lowlp.global<64xsi32>
  // CHECK: lowlp.load_scalar %{{.*}}[%{{.*}}] : !lowlp.global<64xsi32> -> index
  %n = lowlp.load_scalar %w[%c0] : !lowlp.global<64xsi32> -> index
  // CHECK: lowlp.load_scalar %{{.*}}[%{{.*}}] in_bounds : !lowlp.shared<16xf16> -> f32
  %f = lowlp.load_scalar %s[%n] in_bounds : !lowlp.shared<16xf16> -> f32
  // CHECK: lowlp.gather_global %{{.*}}[%{{.*}}, %{{.*}}] indices %{{.*}} dim 0 in_bounds : !lowlp.global<64x8xf16>, !lowlp.tile<16x1xsi32,
  %t = lowlp.gather_global %v[%c0, %n] indices %rows dim 0 in_bounds : !lowlp.global<64x8xf16>, !rows -> !tile
  // CHECK: lowlp.lookup %{{.*}}, %{{.*}} : !lowlp.shared<16xf16>, !lowlp.tile<16x8xui4, spatial(8, 4).local(2, 2)> -> !lowlp.tile<16x8xf16,
  %u = lowlp.lookup %s, %codes : !lowlp.shared<16xf16>, !codes -> !tile
  %sum = lowlp.add %t, %u : !tile
  // CHECK: lowlp.scatter_global %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] indices %{{.*}} dim 0 : !lowlp.tile<16x8xf16,
  lowlp.scatter_global %sum, %v[%c0, %c0] indices %rows dim 0 : !tile, !lowlp.global<64x8xf16>, !rows
  return
}
