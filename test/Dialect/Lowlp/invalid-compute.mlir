// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @splat_type(%x: f32) {
  // expected-error @below {{'lowlp.splat' op element types must match: value is 'f32', tile holds 'f16'}}
  %t = lowlp.splat %x : f32 -> !lowlp.tile<32xf16, spatial(32)>
  return
}

// -----

func.func @splat_code(%x: f8E4M3FN) {
  // expected-error @below {{'lowlp.splat' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'f8E4M3FN': cast it first}}
  %t = lowlp.splat %x : f8E4M3FN -> !lowlp.tile<32xf8E4M3FN, spatial(32)>
  return
}

// -----

func.func @add(%x: !lowlp.tile<32xsi6, spatial(32)>) {
  // expected-error @below {{'lowlp.add' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'si6': cast it first}}
  %t = lowlp.add %x, %x : !lowlp.tile<32xsi6, spatial(32)>
  return
}

// -----

func.func @sub(%x: !lowlp.tile<32xui1, spatial(32)>) {
  // expected-error @below {{'lowlp.sub' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'ui1': cast it first}}
  %t = lowlp.sub %x, %x : !lowlp.tile<32xui1, spatial(32)>
  return
}

// -----

func.func @mul(%x: !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>) {
  // expected-error @below {{'lowlp.mul' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds '!lowlp.float<e2m2>': cast it first}}
  %t = lowlp.mul %x, %x : !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>
  return
}

// -----

func.func @div(%x: !lowlp.tile<32xf4E2M1FN, spatial(32)>) {
  // expected-error @below {{'lowlp.div' op computes in f16, bf16 or f32, but the tile holds 'f4E2M1FN': cast it first}}
  %t = lowlp.div %x, %x : !lowlp.tile<32xf4E2M1FN, spatial(32)>
  return
}

// -----

func.func @neg(%x: !lowlp.tile<32xsi8, spatial(32)>) {
  // expected-error @below {{'lowlp.neg' op computes in f16, bf16, f32, si16 or si32, but the tile holds 'si8': cast it first}}
  %t = lowlp.neg %x : !lowlp.tile<32xsi8, spatial(32)>
  return
}

// -----

func.func @cast_layout(%x: !lowlp.tile<64xsi6, local(2).spatial(32)>) {
  // expected-error @below {{'lowlp.cast' op layouts must match: source has 'local(2).spatial(32)', result has 'spatial(32).local(2)'}}
  %t = lowlp.cast %x : !lowlp.tile<64xsi6, local(2).spatial(32)> -> !lowlp.tile<64xf16, spatial(32).local(2)>
  return
}

// -----

func.func @view_threads(%x: !lowlp.tile<64xui8, spatial(64)>) {
  // expected-error @below {{'lowlp.view' op threads must match: source is held by 64, result by 32}}
  %t = lowlp.view %x : !lowlp.tile<64xui8, spatial(64)> -> !lowlp.tile<32xui8, spatial(32)>
  return
}

// -----

func.func @view_bits(%x: !lowlp.tile<96xui8, local(3).spatial(32)>) {
  // expected-error @below {{'lowlp.view' op bits per thread must match: source holds 24, result holds 32}}
  %t = lowlp.view %x : !lowlp.tile<96xui8, local(3).spatial(32)> -> !lowlp.tile<128xsi8, local(4).spatial(32)>
  return
}

// -----

func.func @dot_rank(%a: !lowlp.tile<16xf16, local(16)>, %b: !lowlp.tile<16x8xf16, local(16, 8)>,
                    %c: !lowlp.tile<16x8xf32, local(16, 8)>) {
  // expected-error @below {{'lowlp.dot' op operands have 2 dimensions, but one has 1}}
  %d = lowlp.dot %a, %b, %c : !lowlp.tile<16xf16, local(16)>, !lowlp.tile<16x8xf16, local(16, 8)>,
      !lowlp.tile<16x8xf32, local(16, 8)>
  return
}

// -----

!a = !lowlp.tile<16x32xf16, local(16, 32)>
!b = !lowlp.tile<16x8xf16, local(16, 8)>
!c = !lowlp.tile<16x8xf32, local(16, 8)>
func.func @dot_k(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'lowlp.dot' op K must match: a is 16x32, b is 16x8}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  return
}

// -----

!a = !lowlp.tile<16x16xf16, local(16, 16)>
!b = !lowlp.tile<16x8xf16, local(16, 8)>
!c = !lowlp.tile<8x16xf32, local(8, 16)>
func.func @dot_c(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'lowlp.dot' op c must be 16x8, or a multiple of the rows, but is 8x16}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  return
}

// -----

!a = !lowlp.tile<16x16xf16, local(16, 16)>
!b = !lowlp.tile<16x8xf16, local(16, 8)>
!c = !lowlp.tile<48x8xf32, local(48, 8)>
func.func @dot_slices(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'lowlp.dot' op K = 16 does not divide into the 3 slices that c has rows for}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  return
}

// -----

func.func @rescale_of_halves(%t: !lowlp.tile<32xf16, spatial(32)>) {
  // expected-error @below {{'lowlp.rescale' op takes f32, but a tile holds 'f16'}}
  %d = lowlp.rescale %t, %t : !lowlp.tile<32xf16, spatial(32)>, !lowlp.tile<32xf16, spatial(32)>
  return
}

// -----

func.func @rescale_by_factors_of_others(%t: !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)>, %f: !lowlp.tile<1x2xf32, spatial(1, 2).reduce(spatial(1, 16), dims=[1], keep_dims=True)>) {
  // expected-error @below {{'lowlp.rescale' op thread 0 does not hold element (0, 1) of the source}}
  %d = lowlp.rescale %t, %f : !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)>, !lowlp.tile<1x2xf32, spatial(1, 2).reduce(spatial(1, 16), dims=[1], keep_dims=True)>
  return
}

// -----

func.func @fma(%t: !lowlp.tile<32xsi6, spatial(32)>) {
  // expected-error @below {{'lowlp.fma' op computes in f16, bf16 or f32, but the tile holds 'si6': cast it first}}
  %d = lowlp.fma %t, %t, %t : !lowlp.tile<32xsi6, spatial(32)>
  return
}

// -----

!a = !lowlp.tile<16x16xf16, local(16, 16)>
!b = !lowlp.tile<16x8xbf16, local(16, 8)>
!c = !lowlp.tile<16x8xf32, local(16, 8)>
func.func @dot_types(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'lowlp.dot' op a and b must both hold f16, both bf16, both ui1, 8-bit integers or f8E4M3FN and f8E5M2, but hold 'f16' and 'bf16'}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  return
}

// -----

!a = !lowlp.tile<16x16xf16, local(16, 16)>
!b = !lowlp.tile<16x8xf16, local(16, 8)>
!c = !lowlp.tile<16x8xf16, local(16, 8)>
func.func @dot_accumulators(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'lowlp.dot' op accumulators are 'f32', but c holds 'f16'}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  return
}

// -----

!a = !lowlp.tile<16x16xf16, spatial(8, 4).local(2, 4)>
!b = !lowlp.tile<16x8xf16, local(16, 8)>
!c = !lowlp.tile<16x8xf32, spatial(8, 4).local(2, 2)>
func.func @dot_threads(%a: !a, %b: !b, %c: !c) {
  // expected-error @below {{'lowlp.dot' op operands must be held by the same threads, but a has 32, b 1 and c 32}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  return
}

// -----

func.func @neg_unsigned(%x: !lowlp.tile<32xui32, spatial(32)>) {
  // expected-error @below {{'lowlp.neg' op computes in f16, bf16, f32, si16 or si32, but the tile holds 'ui32': cast it first}}
  %t = lowlp.neg %x : !lowlp.tile<32xui32, spatial(32)>
  return
}

// -----

func.func @splat_integer(%x: i32) {
  // expected-error @below {{'lowlp.splat' op element types must match: value is 'i32', tile holds 'si16'}}
  %t = lowlp.splat %x : i32 -> !lowlp.tile<32xsi16, spatial(32)>
  return
}
