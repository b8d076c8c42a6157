// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @elements(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xbf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op a and b must both hold f16, both bf16, 8-bit integers or f8E4M3FN and f8E5M2, or ui1 and ui32, but hold 'f16' and 'bf16'}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xbf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @bits(%a: !lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>, %b: !lowlp.shared<16x256xui1>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op a and b must both hold f16, both bf16, 8-bit integers or f8E4M3FN and f8E5M2, or ui1 and ui32, but hold 'ui1' and 'ui1'}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>, !lowlp.shared<16x256xui1> -> !lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @type_of_accumulators(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op the accumulators are 'f32', but the result holds 'si32'}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @dimensions(%a: !lowlp.tile<1x64x64xf16, local(1, 1, 1).spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op a and the accumulators have 2 dimensions, but have 3 and 2}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<1x64x64xf16, local(1, 1, 1).spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @dimensions_of_b(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<1024xf16>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op b is a shared tile of N rows of K elements, but has 1 dimension}}
  %s = lowlp.wgmma %a, %b[%o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<1024xf16> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @offsets(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op expected one offset for each of the 2 dimensions of the shared tile, found 1}}
  %s = lowlp.wgmma %a, %b[%o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @rows(%a: !lowlp.tile<128x64xf16, spatial(4, 1).local(2, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op M must match: a has 128 rows, the accumulators have 64, which is no multiple}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<128x64xf16, spatial(4, 1).local(2, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @columns(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<264x64xf16, swizzle(local(264, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op N must be a multiple of 8 up to 256, but is 264}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<264x64xf16, swizzle(local(264, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x264xf32, spatial(4, 1).local(1, 33).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @columns_of_integers(%a: !lowlp.tile<64x64xsi8, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>, %b: !lowlp.shared<40x64xui8, swizzle(local(40, 4), dim=1, log_step=1).local(1, 16)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op N must be 8, 24 or a multiple of 16 for integers, but is 40}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xsi8, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>, !lowlp.shared<40x64xui8, swizzle(local(40, 4), dim=1, log_step=1).local(1, 16)> -> !lowlp.accumulators<64x40xsi32, spatial(4, 1).local(1, 5).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @depth(%a: !lowlp.tile<64x8xf16, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op K must be a multiple of 16, but is 8}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x8xf16, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @part(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<8x64xf16, swizzle(local(8, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op b must have 16 rows of 64 elements, but has 8 of 64}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<8x64xf16, swizzle(local(8, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @type_of_c(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index, %c: !lowlp.accumulators<64x8xf32, spatial(4, 1).local(1, 1).local(2, 1).spatial(8, 4).local(1, 2)>) {
  // expected-error @below {{'lowlp.wgmma' op c must be '!lowlp.tile<64x16xf32, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>', in flight or not, but is '!lowlp.accumulators<64x8xf32}}
  %s = lowlp.wgmma %a, %b[%o, %o] plus %c : !lowlp.accumulators<64x8xf32, spatial(4, 1).local(1, 1).local(2, 1).spatial(8, 4).local(1, 2)> : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @threads(%a: !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op a and the accumulators must be held by the same warpgroups of 128 threads, as many for each slice, but are by 64 and 64 threads}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<32x16xf32, spatial(2, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @layout(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op no matrix descriptor describes the layout of b, 'local(16, 64)'; allowed are swizzle(local(16, 8), dim=1).local(1, 8) or local(1, 2).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8) or local(1, 4).swizzle(local(16, 2), dim=1, log_step=2).local(1, 8) or local(2, 8).local(8, 8)}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @wide_rows(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<2x16x128xf16, local(2, 1, 1).swizzle(local(16, 16), dim=1).local(1, 8)>, %o: index) {
  // Rows of 256 bytes are two patterns, one after the other.
  // expected-error @below {{'lowlp.wgmma' op no matrix descriptor describes the layout of b, 'local(2, 1, 1).swizzle(local(16, 16), dim=1).local(1, 8)'; allowed are local(2, 1, 2).swizzle(local(16, 8), dim=1).local(1, 8) or}}
  %s = lowlp.wgmma %a, %b[%o, %o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<2x16x128xf16, local(2, 1, 1).swizzle(local(16, 16), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @shape_of_b(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<20x64xf16>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op no matrix descriptor describes the layout of b, 'local(20, 64)'; allowed are none, as rows must be multiples of 8 and take multiples of 32 bytes}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<20x64xf16> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @offset(%a: !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  %c4 = arith.constant 4 : index
  // expected-error @below {{'lowlp.wgmma' op the part of b must begin at a multiple of 8 rows and 16 elements of K, but an offset is 4}}
  %s = lowlp.wgmma %a, %b[%c4, %o] : !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @wait(%s: !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>) {
  // expected-error @below {{'lowlp.wgmma_wait' op results must be the tiles of the accumulators}}
  %d = lowlp.wgmma_wait 0 takes %s : (!lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>) -> !lowlp.tile<64x8xf32, spatial(4, 1).local(1, 1).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

// expected-error @below {{accumulators must be f32 or si32, but are 'f16'}}
func.func @type(%s: !lowlp.accumulators<64x16xf16, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>) {
  return
}

// -----

func.func @words_of_bits(%a: !lowlp.tile<64x512xui1, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 32)>, %b: !lowlp.shared<16x8xui32, swizzle(local(16, 2), dim=1, log_step=2).local(1, 4)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op b must have 16 rows of 16 elements, but has 16 of 8}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x512xui1, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 32)>, !lowlp.shared<16x8xui32, swizzle(local(16, 2), dim=1, log_step=2).local(1, 4)> -> !lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @place_of_bits(%a: !lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>, %b: !lowlp.shared<16x16xui32, swizzle(local(16, 4), dim=1, log_step=1).local(1, 4)>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{'lowlp.wgmma' op the part of b must begin at a multiple of 8 rows and 8 elements of K, but an offset is 4}}
  %s = lowlp.wgmma %a, %b[%c0, %c4] : !lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>, !lowlp.shared<16x16xui32, swizzle(local(16, 4), dim=1, log_step=1).local(1, 4)> -> !lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @slices_of_k(%a: !lowlp.tile<64x48xf16, spatial(1, 1).spatial(4, 1).local(1, 3).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<2x16x64xf16, local(2, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op K must be a multiple of 32, but is 48}}
  %s = lowlp.wgmma %a, %b[%o, %o, %o] : !lowlp.tile<64x48xf16, spatial(1, 1).spatial(4, 1).local(1, 3).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<2x16x64xf16, local(2, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<128x16xf32, spatial(4, 1).local(2, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @slices_of_b(%a: !lowlp.tile<64x64xf16, spatial(1, 2).spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op b must have a dimension of 2 slices before the last two}}
  %s = lowlp.wgmma %a, %b[%o, %o] : !lowlp.tile<64x64xf16, spatial(1, 2).spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<128x16xf32, spatial(8, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @threads_of_slices(%a: !lowlp.tile<64x64xf16, spatial(1, 2).spatial(2, 1).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>, %b: !lowlp.shared<2x16x64xf16, local(2, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>, %o: index) {
  // expected-error @below {{'lowlp.wgmma' op a and the accumulators must be held by the same warpgroups of 128 threads, as many for each slice, but are by 128 and 128 threads}}
  %s = lowlp.wgmma %a, %b[%o, %o, %o] : !lowlp.tile<64x64xf16, spatial(1, 2).spatial(2, 1).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.shared<2x16x64xf16, local(2, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<128x16xf32, spatial(4, 1).local(2, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  return
}
