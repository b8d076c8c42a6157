// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @below {{unknown type 'lowlp.matrix'}}
func.func private @f(!lowlp.matrix<16xf16>)

// -----

// expected-error @below {{element type must be an integer with a sign of 1 to 8, 16 or 32 bits (si6, ui32), a float of 3 to 8 bits, f16, bf16 or f32, but is 'i8'}}
func.func private @signless(!lowlp.ptr<i8>)

// -----

// expected-error @below {{element type must be an integer with a sign of 1 to 8, 16 or 32 bits (si6, ui32), a float of 3 to 8 bits, f16, bf16 or f32, but is 'ui9'}}
func.func private @too_wide(!lowlp.global<4xui9>)

// -----

// expected-error @below {{element type must be an integer with a sign of 1 to 8, 16 or 32 bits (si6, ui32), a float of 3 to 8 bits, f16, bf16 or f32, but is 'f64'}}
func.func private @double(!lowlp.shared<4xf64>)

// -----

// expected-error @below {{element type must be an integer with a sign of 1 to 8, 16 or 32 bits (si6, ui32), a float of 3 to 8 bits, f16, bf16 or f32, but is 'f8E4M3FNUZ'}}
func.func private @other_float(!lowlp.tile<4xf8E4M3FNUZ, local(4)>)

// -----

// expected-error @below {{expected a split such as e3m1, found 'm1e3'}}
func.func private @f(!lowlp.ptr<!lowlp.float<m1e3>>)

// -----

// expected-error @below {{a float has at least 1 exponent bit and 3 to 8 bits in all, but e0m4 has 5 bits}}
func.func private @no_exponent(!lowlp.ptr<!lowlp.float<e0m4>>)

// -----

// expected-error @below {{a float has at least 1 exponent bit and 3 to 8 bits in all, but e1m0 has 2 bits}}
func.func private @two_bits(!lowlp.ptr<!lowlp.float<e1m0>>)

// -----

// expected-error @below {{a float has at least 1 exponent bit and 3 to 8 bits in all, but e5m3 has 9 bits}}
func.func private @nine_bits(!lowlp.ptr<!lowlp.float<e5m3>>)

// -----

// The sum of the bits must not wrap around.
// expected-error @below {{a float has at least 1 exponent bit and 3 to 8 bits in all, but e4294967290m10 has 4294967301 bits}}
func.func private @wrapped(!lowlp.ptr<!lowlp.float<e4294967290m10>>)

// -----

// expected-error @below {{e4m3 is a builtin type: write it as MLIR does}}
func.func private @two_spellings(!lowlp.ptr<!lowlp.float<e4m3>>)

// -----

// expected-error @below {{a view has at least 1 dimension}}
func.func private @f(!lowlp.global<f16>)

// -----

// expected-error @below {{extents must be at least 1, but one is 0}}
func.func private @f(!lowlp.global<4x0xf16>)

// -----

// expected-error @below {{the layout of a shared tile has 1 thread, but 'spatial(4, 4)' has 16}}
func.func private @f(!lowlp.shared<4x4xf16, spatial(4, 4)>)

// -----

// expected-error @below {{extents must be at least 1; found (0, 4)}}
func.func private @empty_shared(!lowlp.shared<0x4xf16>)

// -----

// expected-error @below {{the shape is empty; a layout has at least one dimension}}
func.func private @scalar_shared(!lowlp.shared<f16>)

// -----

// expected-error @below {{shape is 16x8, but the layout's shape is 8x4}}
func.func private @f(!lowlp.tile<16x8xf16, spatial(8, 4)>)

// -----

// expected-error @below {{expected static shape}}
func.func private @f(!lowlp.tile<?x8xf16, spatial(8, 4)>)

// -----

// expected-error @below {{expected ',' or ')' at position 10 of the layout 'spatial(8 4)'; found '4'}}
func.func private @f(!lowlp.tile<8x4xf16, spatial(8 4)>)

// -----

// expected-error @below {{expected '#lowlp.cache_estimate<...>', '#lowlp.codebook_cache<...>', '#lowlp.layout<...>', '#lowlp.codec<...>', '#lowlp.multicast<...>', '#lowlp.placement<...>', '#lowlp.plan<...>', '#lowlp.ring<...>', '#lowlp.rings<...>', '#lowlp.schedule<...>' or '#lowlp.stages<...>', found '#lowlp.order<local(2)>'}}
"test.op"() {layout = #lowlp.order<local(2)>} : () -> ()

// -----

// expected-error @below {{expected local, spatial, column_local, column_spatial or reduce at position 0 of the layout 'row_major(4)'; found 'row_major'}}
"test.op"() {layout = #lowlp.layout<row_major(4)>} : () -> ()

// -----

// expected-error @below {{'<' must follow the name at once}}
func.func private @space(%x: !lowlp.tile <32xf32, spatial(32)>)
