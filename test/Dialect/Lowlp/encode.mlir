// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @planes
func.func @planes(%c: !lowlp.tile<8x4x32xui8, spatial(8, 4, 1).local(1, 1, 32)>,
                  %d: !lowlp.tile<64x32xsi8, local(2, 1).spatial(32, 1).local(1, 32)>) {
  // CHECK: lowlp.encode %{{.*}} : !lowlp.tile<8x4x32xui8, spatial(8, 4, 1).local(1, 1, 32)> -> !lowlp.tile<8x2x4xui32, spatial(8, 1, 4).local(1, 2, 1)>
  %0 = lowlp.encode %c : !lowlp.tile<8x4x32xui8, spatial(8, 4, 1).local(1, 1, 32)>
    -> !lowlp.tile<8x2x4xui32, spatial(8, 1, 4).local(1, 2, 1)>
  // The dimension of words comes after that of planes also where there is no other.
  // CHECK: lowlp.encode %{{.*}} -> !lowlp.tile<8x64xui32, column_local(8, 2).spatial(1, 32)>
  %1 = lowlp.encode %d : !lowlp.tile<64x32xsi8, local(2, 1).spatial(32, 1).local(1, 32)>
    -> !lowlp.tile<8x64xui32, local(1, 2).spatial(1, 32).local(8, 1)>
  return
}
