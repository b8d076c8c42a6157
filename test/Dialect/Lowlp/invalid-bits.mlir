// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @and(%x: !lowlp.tile<32xf32, spatial(32)>) {
  // expected-error @below {{'lowlp.and' op works on integers, but the tile holds 'f32': cast it first}}
  %t = lowlp.and %x, %x : !lowlp.tile<32xf32, spatial(32)>
  return
}

// -----

func.func @not(%x: !lowlp.tile<32xf4E2M1FN, spatial(32)>) {
  // expected-error @below {{'lowlp.not' op works on integers, but the tile holds 'f4E2M1FN': cast it first}}
  %t = lowlp.not %x : !lowlp.tile<32xf4E2M1FN, spatial(32)>
  return
}

// -----

func.func @popcount(%x: !lowlp.tile<32xui8, spatial(32)>) {
  // expected-error @below {{'lowlp.popcount' op the result must be '!lowlp.tile<32xsi32, spatial(32)>', but is '!lowlp.tile<32xui8, spatial(32)>'}}
  %t = lowlp.popcount %x : !lowlp.tile<32xui8, spatial(32)> -> !lowlp.tile<32xui8, spatial(32)>
  return
}

// -----

func.func @funnel_shift(%x: !lowlp.tile<32xui16, spatial(32)>) {
  // expected-error @below {{'lowlp.funnel_shift' op works on si32 or ui32, but the tile holds 'ui16'}}
  %t = lowlp.funnel_shift left wrap %x, %x, %x : !lowlp.tile<32xui16, spatial(32)>
  return
}

// -----

func.func @floor_div(%x: !lowlp.tile<32xsi8, spatial(32)>) {
  // expected-error @below {{'lowlp.floor_div' op divides integers of 16 or 32 bits, but the tile holds 'si8': cast it first}}
  %t = lowlp.floor_div %x, %x : !lowlp.tile<32xsi8, spatial(32)>
  return
}
