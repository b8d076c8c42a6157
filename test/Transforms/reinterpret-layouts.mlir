// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-reinterpret-layouts))" | FileCheck %s

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!part = !lowlp.tile<16x32xsi6, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>

// A whole unit of 6 words a lane, and then two of its steps, from words of the same form.
// CHECK-LABEL: lowlp.kernel @units
// CHECK: %[[V:.*]] = lowlp.view_global %{{.*}} shape [4, 4, 192] : !lowlp.ptr<ui32> -> !lowlp.global<4x4x192xui32>
// CHECK: %[[ROW:.*]] = lowlp.assume_divisible %{{.*}} by 16
// CHECK: %[[I:.*]] = arith.divui %[[ROW]], %{{.*}} : index
// CHECK: %[[W:.*]] = lowlp.load_global %[[V]][%[[I]], %{{.*}}, %{{.*}}] : !lowlp.global<4x4x192xui32> -> !lowlp.tile<1x1x192xui32, local(1, 1, 3).spatial(1, 1, 32).local(1, 1, 2)>
// CHECK: lowlp.unpack %[[W]] from "int6.f16" : {{.*}} -> !lowlp.tile<16x64xsi6,
// CHECK: lowlp.unpack %{{.*}} from "int6.f16" step 2 : {{.*}} -> !lowlp.tile<16x32xsi6,
lowlp.kernel @units(%p: !lowlp.ptr<ui32>, %m: i32) attributes {grid = affine_map<(d0) -> (1)>, num_threads = 32 : i64} {
  %row = arith.index_cast %m : i32 to index
  %c128 = arith.constant 128 : index
  %v = lowlp.view_packed %p shape [60, 256] : !lowlp.ptr<ui32> -> !lowlp.packed<60x256, #lowlp.codec<int6>, f16>
  %a = lowlp.load_packed %v[%row, %c128] : !lowlp.packed<60x256, #lowlp.codec<int6>, f16> -> !codes
  %b = lowlp.load_packed %v[%row, %c128] step 2 : !lowlp.packed<60x256, #lowlp.codec<int6>, f16> -> !part
  %f = lowlp.cast %a : !codes -> !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
  %g = lowlp.cast %b : !part -> !lowlp.tile<16x32xf16, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
  lowlp.return
}

// -----

!codes = !lowlp.tile<64x64xui1, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// The four warps of a warpgroup share a unit of 64 rows: each holds the words, and takes a tile of 16 rows of it. K is known
// at launch.
// CHECK-LABEL: lowlp.kernel @shared_unit
// CHECK: %[[K:.*]] = arith.ceildivui %{{.*}}, %{{.*}} : index
// CHECK: lowlp.view_global %{{.*}} shape [1, %[[K]], 128] : !lowlp.ptr<ui32> -> !lowlp.global<1x?x128xui32>
// CHECK: lowlp.load_global {{.*}} -> !lowlp.tile<1x1x128xui32, reduce(spatial(1, 1, 1, 4), dims=[3]).spatial(1, 1, 32).local(1, 1, 4)>
lowlp.kernel @shared_unit(%p: !lowlp.ptr<ui32>, %k32: i32) attributes {grid = affine_map<(d0) -> (1)>, num_threads = 128 : i64} {
  %k = arith.index_cast %k32 : i32 to index
  %c0 = arith.constant 0 : index
  %v = lowlp.view_packed %p shape [64, %k] : !lowlp.ptr<ui32> -> !lowlp.packed<64x?, #lowlp.codec<uint1>, f16>
  %a = lowlp.load_packed %v[%c0, %c0] : !lowlp.packed<64x?, #lowlp.codec<uint1>, f16> -> !codes
  %f = lowlp.cast %a : !codes -> !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
  lowlp.return
}

// -----

!codes = !lowlp.tile<32x64xsi6, local(1, 2).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>

// Rows of 96 weights are three units of 32 rows by 32 weights, of which a tile takes two. It promises to lie within.
// CHECK-LABEL: lowlp.kernel @narrow_units
// CHECK: lowlp.view_global %{{.*}} shape [2, 3, 192] : !lowlp.ptr<ui32> -> !lowlp.global<2x3x192xui32>
// CHECK: lowlp.load_global %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] in_bounds : {{.*}} -> !lowlp.tile<1x2x192xui32, local(1, 2, 3).spatial(1, 1, 32).local(1, 1, 2)>
// CHECK: lowlp.unpack %{{.*}} from "int6.f16.k32" :
lowlp.kernel @narrow_units(%p: !lowlp.ptr<ui32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v = lowlp.view_packed %p shape [64, 96] : !lowlp.ptr<ui32> -> !lowlp.packed<64x96, #lowlp.codec<int6>, f16.k32>
  %a = lowlp.load_packed %v[%c0, %c32] in_bounds : !lowlp.packed<64x96, #lowlp.codec<int6>, f16.k32> -> !codes
  lowlp.return
}

// -----

!codes = !lowlp.tile<16x64xui16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// Several matrices, each padded to whole units: which of them is an offset of its own. Codes of 12 bits have 12 words a lane.
// CHECK-LABEL: lowlp.kernel @several
// CHECK: %[[V:.*]] = lowlp.view_global %{{.*}} shape [8, 2, 2, 384] : !lowlp.ptr<ui32> -> !lowlp.global<8x2x2x384xui32>
// CHECK: lowlp.load_global %[[V]][%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : {{.*}} -> !lowlp.tile<1x1x384xui32,
// CHECK: lowlp.unpack %{{.*}} from "lut12.f16"
lowlp.kernel @several(%p: !lowlp.ptr<ui32>, %m: i32) attributes {grid = affine_map<(d0) -> (1)>, num_threads = 32 : i64} {
  %which = arith.index_cast %m : i32 to index
  %c0 = arith.constant 0 : index
  %v = lowlp.view_packed %p shape [8, 20, 96] : !lowlp.ptr<ui32> -> !lowlp.packed<8x20x96, #lowlp.codec<lut12:f16:tensor>, f16>
  %a = lowlp.load_packed %v[%which, %c0, %c0] : !lowlp.packed<8x20x96, #lowlp.codec<lut12:f16:tensor>, f16> -> !codes
  lowlp.return
}

// -----

!codes = !lowlp.tile<16x16xui8, local(1, 4).local(2, 1).spatial(8, 4)>
!both = !lowlp.tile<16x32xui8, local(1, 4).local(2, 1).spatial(8, 4).local(1, 2)>

// Codes of two books are in the same words: of a unit, a vector of 4 words for each lane.
// CHECK-LABEL: lowlp.kernel @books
// CHECK: %[[V:.*]] = lowlp.view_global %{{.*}} shape [2, 2, 128] : !lowlp.ptr<ui32> -> !lowlp.global<2x2x128xui32>
// CHECK: %[[FIRST:.*]] = lowlp.load_global %[[V]]{{.*}} -> !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
// CHECK: lowlp.unpack %[[FIRST]] from "vec8-2x8.f16.k128" book 0 :
// CHECK: lowlp.unpack %{{.*}} from "vec8-2x8.f16.k128" book 1 :
// CHECK: lowlp.unpack %{{.*}} from "vec8-2x8.f16.k128" : !lowlp.tile<1x1x128xui32,
lowlp.kernel @books(%p: !lowlp.ptr<ui32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_packed %p shape [32, 256] : !lowlp.ptr<ui32> -> !lowlp.packed<32x256, #lowlp.codec<vec8:2x8:f16>, f16.k128>
  %a = lowlp.load_packed %v[%c0, %c0] book 0 : !lowlp.packed<32x256, #lowlp.codec<vec8:2x8:f16>, f16.k128> -> !codes
  %b = lowlp.load_packed %v[%c0, %c0] book 1 : !lowlp.packed<32x256, #lowlp.codec<vec8:2x8:f16>, f16.k128> -> !codes
  %c = lowlp.load_packed %v[%c0, %c0] : !lowlp.packed<32x256, #lowlp.codec<vec8:2x8:f16>, f16.k128> -> !both
  lowlp.return
}
