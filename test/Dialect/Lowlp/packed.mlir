// RUN: lowlp-opt %s | lowlp-opt | FileCheck %s

// CHECK: !lowlp.packed<4096x?, #lowlp.codec<int6 g128 f16>, f16>
func.func private @integers(!lowlp.packed<4096x?, #lowlp.codec<int6 g128 f16>, f16>)
// CHECK: !lowlp.packed<16x64, #lowlp.codec<f4e2m1 g16 e4m3 scale2>, bf16>
func.func private @floats(!lowlp.packed<16x64, #lowlp.codec<f4e2m1 g16 e4m3 scale2>, bf16>)
// CHECK: !lowlp.packed<16x64, #lowlp.codec<uint4 g32 uint8 offsets:uint8 super:f16:g256>, bf16>
func.func private @two_levels(!lowlp.packed<16x64, #lowlp.codec<uint4 g32 uint8 offsets:uint8 super:f16:g256>, bf16>)
// CHECK: !lowlp.packed<16x64, #lowlp.codec<lut1:f32[-1, 0.5] tensor f16>, f16>
func.func private @table(!lowlp.packed<16x64, #lowlp.codec<lut1:f32[-1.0, 5e-1] tensor f16>, f16>)
// CHECK: !lowlp.packed<8x16x64, #lowlp.codec<lut12:f16:group g64 f16>, f16>
func.func private @wide_tables(!lowlp.packed<8x16x64, #lowlp.codec<lut12:f16:group g64 f16>, f16>)
// CHECK: !lowlp.packed<16x64, #lowlp.codec<uint4>, int8>
func.func private @codes_for_integers(!lowlp.packed<16x64, #lowlp.codec<uint4>, int8>)
// CHECK: !lowlp.packed<32x96, #lowlp.codec<int6>, bf16.k32>
func.func private @narrow_units(!lowlp.packed<32x96, #lowlp.codec<int6>, bf16.k32>)

// CHECK: !lowlp.packed<64x896, #lowlp.codec<vec8:1x8:int8:256x* channel f16>, f16.k128>
func.func private @vectors(!lowlp.packed<64x896, #lowlp.codec<vec8:1x8:int8:256x* channel f16>, f16.k128>)
// CHECK: !lowlp.packed<2x64x128, #lowlp.codec<e8p+e81b g32 bf16>, bf16>
func.func private @lattices(!lowlp.packed<2x64x128, #lowlp.codec<e8p+e81b g32 bf16>, bf16>)

// CHECK: codec = #lowlp.codec<bipolar2 channel f32>
// CHECK-SAME: placement = #lowlp.placement<e3m2.f16.k16>
func.func private @attributes() attributes {codec = #lowlp.codec<bipolar2 channel f32>, placement = #lowlp.placement<e3m2.f16.k16>}

!codes = !lowlp.tile<16x64xui16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
// The codes of table 1 of several, as numbers of 16 bits.
// CHECK-LABEL: func.func @load
// CHECK: lowlp.load_packed %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : !lowlp.packed<8x16x64, #lowlp.codec<lut12:f16:tensor>, f16> -> !lowlp.tile<16x64xui16,
func.func @load(%p: !lowlp.ptr<ui32>, %one: index, %zero: index) {
  %v = lowlp.view_packed %p shape [8, 16, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<8x16x64, #lowlp.codec<lut12:f16:tensor>, f16>
  %q = lowlp.load_packed %v[%one, %zero, %zero] : !lowlp.packed<8x16x64, #lowlp.codec<lut12:f16:tensor>, f16> -> !codes
  return
}

!indices = !lowlp.tile<16x8xui32, local(1, 2).local(2, 1).spatial(8, 4)>
// The codes of the second book, of steps 2 and 3 of a unit of 16 rows by 256 weights.
// CHECK-LABEL: func.func @load_book
// CHECK: lowlp.load_packed %{{.*}}[%{{.*}}, %{{.*}}] step 2 book 1 in_bounds : !lowlp.packed<16x256, #lowlp.codec<vec8:2x12:bf16>, bf16.k256> -> !lowlp.tile<16x8xui32,
func.func @load_book(%p: !lowlp.ptr<ui32>, %zero: index) {
  %v = lowlp.view_packed %p shape [16, 256] : !lowlp.ptr<ui32> -> !lowlp.packed<16x256, #lowlp.codec<vec8:2x12:bf16>, bf16.k256>
  %q = lowlp.load_packed %v[%zero, %zero] step 2 book 1 in_bounds : !lowlp.packed<16x256, #lowlp.codec<vec8:2x12:bf16>, bf16.k256> -> !indices
  return
}

// Codes that are spread have a bit more in their words.
// CHECK-LABEL: func.func @load_spread
// CHECK: !lowlp.packed<16x256, #lowlp.codec<vec8:2x12+1:bf16>, bf16.k256> -> !lowlp.tile<16x8xui32,
func.func @load_spread(%p: !lowlp.ptr<ui32>, %zero: index) {
  %v = lowlp.view_packed %p shape [16, 256] : !lowlp.ptr<ui32> -> !lowlp.packed<16x256, #lowlp.codec<vec8:2x12+1:bf16>, bf16.k256>
  %q = lowlp.load_packed %v[%zero, %zero] step 2 book 1 : !lowlp.packed<16x256, #lowlp.codec<vec8:2x12+1:bf16>, bf16.k256> -> !indices
  return
}
