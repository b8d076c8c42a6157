// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{packed weights have 2 dimensions, rows and K, or 3 where there are several, but the type has 1}}
func.func @rank(%v: !lowlp.packed<64, #lowlp.codec<int6>, f16>) { return }

// -----

// expected-error @below {{extents must be at least 1, but one is 0}}
func.func @extent(%v: !lowlp.packed<0x64, #lowlp.codec<int6>, f16>) { return }

// -----

// expected-error @below {{placement: packed format 5 has none named 'e3m2.b1'}}
func.func @family(%v: !lowlp.packed<16x64, #lowlp.codec<f6e3m2>, b1>) { return }

// -----

// expected-error @below {{compute type: must be one of f16, bf16, int8, f8e4m3, b1, got 'f32'}}
func.func @compute(%v: !lowlp.packed<16x64, #lowlp.codec<int6>, f32>) { return }

// -----

// expected-error @below {{fragment family: units have 64 weights of a row, '.k16' to '.k1024', but no less than 32; got 'int8.k16'}}
func.func @units(%v: !lowlp.packed<16x64, #lowlp.codec<int6>, int8.k16>) { return }

// -----

// expected-error @below {{codec: scale: must be one of f16, bf16, f32, e8m0, e4m3, got 'f64'}}
func.func @codec(%v: !lowlp.packed<16x64, #lowlp.codec<int6 g64 f64>, f16>) { return }

// -----

// expected-error @below {{codec: vector: must be one of 2, 4, 8, 16, got 3}}
func.func @vectors(%v: !lowlp.packed<16x64, #lowlp.codec<vec3:2x8:f16 g64 f16>, f16>) { return }

// -----

// expected-error @below {{K must be a multiple of the 8 weights of a code, but is 60}}
func.func @whole_codes(%v: !lowlp.packed<16x60, #lowlp.codec<vec8:2x8:f16>, f16>) { return }

// -----

// expected-error @below {{placement: packed format 5 has none named 'vec8-2x8.f16.k256'}}
func.func @units_of_vectors(%v: !lowlp.packed<16x256, #lowlp.codec<vec8:2x8:f16>, f16.k256>) { return }

// -----

!codes = !lowlp.tile<16x16xui8, local(1, 4).local(2, 1).spatial(8, 4)>
func.func @book(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [16, 128] : !lowlp.ptr<ui32> -> !lowlp.packed<16x128, #lowlp.codec<vec8:2x8:f16>, f16.k128>
  // expected-error @below {{'lowlp.load_packed' op book must be in 0..1, but is 2}}
  %q = lowlp.load_packed %v[%i, %i] book 2 : !lowlp.packed<16x128, #lowlp.codec<vec8:2x8:f16>, f16.k128> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @book_of_numbers(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [16, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<16x64, #lowlp.codec<int6>, f16>
  // expected-error @below {{'lowlp.load_packed' op book is for codes of vectors, but the placement is int6.f16}}
  %q = lowlp.load_packed %v[%i, %i] book 0 : !lowlp.packed<16x64, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

// expected-error @below {{plan for vec8-1x8.f16: codes of vectors are looked up, and no plan decodes them}}
func.func private @plan() attributes {p = #lowlp.plan<["decode vec8-1x8.f16 accumulators words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>}

// -----

// expected-error @below {{placement: packed format 5 has none named 'int9.f16'}}
func.func private @placement() attributes {p = #lowlp.placement<int9.f16>}

// -----

func.func @source(%p: !lowlp.ptr<ui8>) {
  // expected-error @below {{'lowlp.view_packed' op packed weights are ui32, but the source holds 'ui8'}}
  %v = lowlp.view_packed %p shape [16, 64] : !lowlp.ptr<ui8> -> !lowlp.packed<16x64, #lowlp.codec<int6>, f16>
  return
}

// -----

func.func @shape(%p: !lowlp.ptr<ui32>) {
  // expected-error @below {{'lowlp.view_packed' op extents must match the type of the view, '!lowlp.packed<16x64, #lowlp.codec<int6>, f16>'}}
  %v = lowlp.view_packed %p shape [32, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<16x64, #lowlp.codec<int6>, f16>
  return
}

// -----

func.func @extents(%p: !lowlp.ptr<ui32>) {
  // expected-error @below {{'lowlp.view_packed' op expected one value for each dynamic extent}}
  %v = "lowlp.view_packed"(%p) <{staticShape = array<i64: -9223372036854775808, 64>}> : (!lowlp.ptr<ui32>) -> !lowlp.packed<?x64, #lowlp.codec<int6>, f16>
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @offsets(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [3, 16, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<3x16x64, #lowlp.codec<int6>, f16>
  // expected-error @below {{'lowlp.load_packed' op expected 3 offsets, one for each dimension, but found 2}}
  %q = lowlp.load_packed %v[%i, %i] : !lowlp.packed<3x16x64, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @view(%v: !lowlp.packed<16x64, #lowlp.codec<int6>, f16>, %i: index) {
  // expected-error @below {{'lowlp.load_packed' op the view must be a result of lowlp.view_packed}}
  %q = lowlp.load_packed %v[%i, %i] : !lowlp.packed<16x64, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xui6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @element(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [16, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<16x64, #lowlp.codec<int6>, f16>
  // expected-error @below {{'lowlp.load_packed' op element types must match: the tile holds 'ui6', the view holds 'si6'}}
  %q = lowlp.load_packed %v[%i, %i] : !lowlp.packed<16x64, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @row(%p: !lowlp.ptr<ui32>) {
  %v = lowlp.view_packed %p shape [64, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<64x64, #lowlp.codec<int6>, f16>
  %c8 = arith.constant 8 : index
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_packed' op row must be a multiple of 16, but is 8}}
  %q = lowlp.load_packed %v[%c8, %c0] : !lowlp.packed<64x64, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @k(%p: !lowlp.ptr<ui32>) {
  %v = lowlp.view_packed %p shape [64, 128] : !lowlp.ptr<ui32> -> !lowlp.packed<64x128, #lowlp.codec<int6>, f16>
  %c32 = arith.constant 32 : index
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_packed' op k must be a multiple of 64, but is 32}}
  %q = lowlp.load_packed %v[%c0, %c32] : !lowlp.packed<64x128, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @row_of_narrow_unit(%p: !lowlp.ptr<ui32>) {
  %v = lowlp.view_packed %p shape [64, 96] : !lowlp.ptr<ui32> -> !lowlp.packed<64x96, #lowlp.codec<int6>, f16.k32>
  %c16 = arith.constant 16 : index
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_packed' op row must be a multiple of 32, but is 16}}
  %q = lowlp.load_packed %v[%c16, %c0] : !lowlp.packed<64x96, #lowlp.codec<int6>, f16.k32> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @step(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [64, 128] : !lowlp.ptr<ui32> -> !lowlp.packed<64x128, #lowlp.codec<int6>, f16>
  // expected-error @below {{'lowlp.load_packed' op step must be in 0..3, but is 4}}
  %q = lowlp.load_packed %v[%i, %i] step 4 : !lowlp.packed<64x128, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @steps(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [64, 128] : !lowlp.ptr<ui32> -> !lowlp.packed<64x128, #lowlp.codec<int6>, f16>
  // expected-error @below {{has 4 steps from step 1 on, and a unit has 4}}
  %q = lowlp.load_packed %v[%i, %i] step 1 : !lowlp.packed<64x128, #lowlp.codec<int6>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<16x64xui1, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @units(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [64, 128] : !lowlp.ptr<ui32> -> !lowlp.packed<64x128, #lowlp.codec<uint1>, f16>
  // expected-error @below {{takes no units of int1.f16, which are held as local(4, n).column_local(2, 2).spatial(8, 4).local(1, 2), n of the 4 steps}}
  %q = lowlp.load_packed %v[%i, %i] : !lowlp.packed<64x128, #lowlp.codec<uint1>, f16> -> !codes
  return
}

// -----

!codes = !lowlp.tile<1x16x64xui1, local(1, 1, 4).column_local(1, 2, 2).spatial(1, 8, 4).local(1, 1, 2)>
func.func @tile_rank(%p: !lowlp.ptr<ui32>, %i: index) {
  %v = lowlp.view_packed %p shape [64, 128] : !lowlp.ptr<ui32> -> !lowlp.packed<64x128, #lowlp.codec<uint1>, f16>
  // expected-error @below {{must have 2 dimensions}}
  %q = lowlp.load_packed %v[%i, %i] : !lowlp.packed<64x128, #lowlp.codec<uint1>, f16> -> !codes
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @unpack_placement(%w: !words) {
  // expected-error @below {{placement: packed format 5 has none named 'int4'}}
  %q = lowlp.unpack %w from "int4" : !words -> !codes
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui5, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @unpack_element(%w: !words) {
  // expected-error @below {{'lowlp.unpack' op the placement int4.f16 holds no codes of type 'ui5'}}
  %q = lowlp.unpack %w from "int4.f16" : !words -> !codes
  return
}

// -----

!words = !lowlp.tile<1x1x128xsi32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @unpack_words(%w: !words) {
  // expected-error @below {{'lowlp.unpack' op the words must be ui32, but are 'si32'}}
  %q = lowlp.unpack %w from "int4.f16" : !words -> !codes
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, local(1, 1, 4).spatial(1, 1, 32)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @unpack_layout(%w: !words) {
  // expected-error @below {{'lowlp.unpack' op the words must be held as spatial(1, 1, 32).local(1, 1, 4), but are as local(1, 1, 4).spatial(1, 1, 32)}}
  %q = lowlp.unpack %w from "int4.f16" : !words -> !codes
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_text(%w: !words) {
  // expected-error @below {{decode plan: line 2 is not understood: 'r4 = lop4 r0'}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "r4 = lop4 r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_placement(%w: !words) {
  // expected-error @below {{placement: packed format 5 has none named 'int4.f17'}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.f17 accumulators words 4"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_check(%w: !words) {
  // expected-error @below {{plan for int4.f16: step 0 reads register 4, which is not yet there}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent 0", "row 1 exponent 0", "r4 = lop3 r4, 0x1, 0x0, 0xc0", "slot 0 = r4"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!bytes = !lowlp.tile<16x64xf16, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
func.func @plan_family(%w: !words) {
  // expected-error @below {{'lowlp.decode' op the plan's numbers are int8, but the result holds 'f16'}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.int8 accumulators words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !bytes
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xbf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_unsigned(%w: !words) {
  // expected-error @below {{'lowlp.decode' op the plan's numbers are unsigned bytes, but the result holds 'bf16'}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.int8 unsigned words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xbf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_compute(%w: !words) {
  // expected-error @below {{'lowlp.decode' op the plan's numbers are f16, but the result holds 'bf16'}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_ending(%w: !words) {
  // expected-error @below {{'lowlp.decode' op scales and zeros are given where the plan's ending is weights, and only there}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.f16 weights words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!rows = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!wide = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
func.func @plan_scales(%w: !words, %s: !wide, %z: !rows) {
  // expected-error @below {{'lowlp.decode' op scales must hold 'f16', but hold 'f32'}}
  %a = lowlp.decode %w scales %s : !wide zeros %z : !rows {plan = #lowlp.plan<["decode int4.f16 weights words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!rows = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!row = !lowlp.tile<1x1xf16, reduce(spatial(8, 4), dims=[0, 1], keep_dims=True)>
func.func @plan_zeros(%w: !words, %s: !rows, %z: !row) {
  // expected-error @below {{'lowlp.decode' op zeros must be 16x1, or a multiple of the rows by slices, but are '!lowlp.tile<1x1xf16}}
  %a = lowlp.decode %w scales %s : !rows zeros %z : !row {plan = #lowlp.plan<["decode int4.f16 weights words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!rows = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!turned = !lowlp.tile<16x1xf16, local(2, 1).reduce(column_spatial(8, 4), dims=[1], keep_dims=True)>
func.func @plan_held(%w: !words, %s: !turned, %z: !rows) {
  // expected-error @below {{'lowlp.decode' op scales: }}
  %a = lowlp.decode %w scales %s : !turned zeros %z : !rows {plan = #lowlp.plan<["decode int4.f16 weights words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_slots(%w: !words) {
  // expected-error @below {{'lowlp.decode' op the plan does not decode slot 1}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent 0", "row 1 exponent 0", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

!words = !lowlp.tile<1x1x128xui32, reduce(spatial(2, 1, 1), dims=[0], keep_dims=True).spatial(1, 1, 32).local(1, 1, 4)>
!halves = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @plan_rows(%w: !words) {
  // expected-error @below {{'lowlp.decode' op the warps share units, so the plan's rows must be the same for each tile of 16}}
  %a = lowlp.decode %w {plan = #lowlp.plan<["decode int2.f16 accumulators words 4", "row 0 exponent -24", "row 1 exponent -22", "row 2 exponent -20", "row 3 exponent -22", "slot 0 = r0"]>} : !words -> !halves
  return
}

// -----

func.func @rows_type() {
  // expected-error @below {{'lowlp.row_constants' op the tile must hold f32 or si32, but holds 'f16'}}
  %s = lowlp.row_constants [1.0] : !lowlp.tile<16x8xf16, local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @rows_of_integers() {
  // expected-error @below {{'lowlp.row_constants' op the values of a tile of si32 must be whole numbers up to 2^24, but one is 5.000000e-01}}
  %s = lowlp.row_constants [0.5] : !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @rows_values() {
  // expected-error @below {{'lowlp.row_constants' op expected at least 1 value}}
  %s = lowlp.row_constants [] : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
  return
}
