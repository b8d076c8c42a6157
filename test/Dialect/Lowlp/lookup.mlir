// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!codes = !lowlp.tile<16x8xui3, spatial(8, 4).local(2, 2)>
!low = !lowlp.tile<16x8xui2, spatial(8, 4).local(2, 2)>
!high = !lowlp.tile<16x8xui1, spatial(8, 4).local(2, 2)>
!values = !lowlp.tile<16x8xf16, spatial(8, 4).local(2, 2)>
!copies = !lowlp.shared<8x32xf16, local(4, 32).local(2, 1)>

// CHECK-LABEL: func.func @lookups
func.func @lookups(%s: !lowlp.shared<8xf16>, %c: !copies, %p: !lowlp.shared<64x4x2xf16>, %codes: !codes, %low: !low,
                   %high: !high) {
  // CHECK: lowlp.expand_table %{{.*}}, %{{.*}} : !lowlp.shared<8xf16>, !lowlp.shared<8x32xf16, local(4, 32).local(2, 1)>
  lowlp.expand_table %s, %c : !lowlp.shared<8xf16>, !copies
  // CHECK: lowlp.expand_table %{{.*}}, %{{.*}} slices [2, 1] : !lowlp.shared<8xf16>, !lowlp.shared<64x4x2xf16>
  lowlp.expand_table %s, %p slices [2, 1] : !lowlp.shared<8xf16>, !lowlp.shared<64x4x2xf16>
  // CHECK: lowlp.lookup %{{.*}}, %{{.*}} : !lowlp.shared<8x32xf16, {{.*}}>, !lowlp.tile<16x8xui3, {{.*}}> -> !lowlp.tile<16x8xf16,
  %a = lowlp.lookup %c, %codes : !copies, !codes -> !values
  // CHECK: lowlp.lookup_pairs %{{.*}}, %{{.*}}, %{{.*}} : !lowlp.shared<64x4x2xf16>, !lowlp.tile<16x8xui2, {{.*}}>, !lowlp.tile<16x8xui1, {{.*}}> -> !lowlp.tile<16x8xf16,
  %b = lowlp.lookup_pairs %p, %low, %high : !lowlp.shared<64x4x2xf16>, !low, !high -> !values
  // CHECK: lowlp.lookup %{{.*}}, %{{.*}}, %{{.*}} : !lowlp.shared<8xf16>, !lowlp.tile<16x8xui2, {{.*}}>, !lowlp.tile<16x8xui1, {{.*}}> -> !lowlp.tile<16x8xf16,
  %d = lowlp.lookup %s, %low, %high : !lowlp.shared<8xf16>, !low, !high -> !values
  return
}

!bytes = !lowlp.tile<16x32xui8, local(1, 8).local(2, 1).spatial(8, 4)>
!sums = !lowlp.tile<16x4xf32, local(2, 1).spatial(8, 4)>

// CHECK-LABEL: func.func @sums
func.func @sums(%codes: !bytes, %table: !lowlp.shared<256x2x32xf32>, %column: index, %sums: !sums) -> !sums {
  // CHECK: lowlp.add_lookups %{{.*}} in %{{.*}}[%{{.*}}], %{{.*}} : !lowlp.tile<16x32xui8, {{.*}}>, !lowlp.shared<256x2x32xf32>, !lowlp.tile<16x4xf32,
  %next = lowlp.add_lookups %codes in %table[%column], %sums : !bytes, !lowlp.shared<256x2x32xf32>, !sums
  return %next : !sums
}

!words = !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)>
!part = !lowlp.tile<16x64xui1, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// CHECK-LABEL: func.func @slice
func.func @slice(%words: !words) {
  // CHECK: lowlp.unpack %{{.*}} from "lut3.f16" bit 2 : !lowlp.tile<1x1x96xui32, {{.*}}> -> !lowlp.tile<16x64xui1,
  %high = lowlp.unpack %words from "lut3.f16" bit 2 : !words -> !part
  return
}
