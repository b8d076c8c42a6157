// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @minimum(%x: !lowlp.tile<32xsi6, spatial(32)>) {
  // expected-error @below {{'lowlp.minimum' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'si6': cast it first}}
  %t = lowlp.minimum %x, %x : !lowlp.tile<32xsi6, spatial(32)>
  return
}

// -----

func.func @maximum(%x: !lowlp.tile<32xui1, spatial(32)>) {
  // expected-error @below {{'lowlp.maximum' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'ui1': cast it first}}
  %t = lowlp.maximum %x, %x : !lowlp.tile<32xui1, spatial(32)>
  return
}

// -----

func.func @abs(%x: !lowlp.tile<32xf4E2M1FN, spatial(32)>) {
  // expected-error @below {{'lowlp.abs' op computes in f16, bf16, f32, si16 or si32, but the tile holds 'f4E2M1FN': cast it first}}
  %t = lowlp.abs %x : !lowlp.tile<32xf4E2M1FN, spatial(32)>
  return
}

// -----

func.func @exp(%x: !lowlp.tile<32xsi8, spatial(32)>) {
  // expected-error @below {{'lowlp.exp' op computes in f16, bf16 or f32, but the tile holds 'si8': cast it first}}
  %t = lowlp.exp %x : !lowlp.tile<32xsi8, spatial(32)>
  return
}

// -----

func.func @exp2(%x: !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>) {
  // expected-error @below {{'lowlp.exp2' op computes in f16, bf16 or f32, but the tile holds '!lowlp.float<e2m2>': cast it first}}
  %t = lowlp.exp2 %x : !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>
  return
}

// -----

func.func @log2(%x: !lowlp.tile<32xsi6, spatial(32)>) {
  // expected-error @below {{'lowlp.log2' op computes in f16, bf16 or f32, but the tile holds 'si6': cast it first}}
  %t = lowlp.log2 %x : !lowlp.tile<32xsi6, spatial(32)>
  return
}

// -----

func.func @sqrt(%x: !lowlp.tile<32xui1, spatial(32)>) {
  // expected-error @below {{'lowlp.sqrt' op computes in f16, bf16 or f32, but the tile holds 'ui1': cast it first}}
  %t = lowlp.sqrt %x : !lowlp.tile<32xui1, spatial(32)>
  return
}

// -----

func.func @rsqrt(%x: !lowlp.tile<32xf4E2M1FN, spatial(32)>) {
  // expected-error @below {{'lowlp.rsqrt' op computes in f16, bf16 or f32, but the tile holds 'f4E2M1FN': cast it first}}
  %t = lowlp.rsqrt %x : !lowlp.tile<32xf4E2M1FN, spatial(32)>
  return
}

// -----

func.func @tanh(%x: !lowlp.tile<32xsi8, spatial(32)>) {
  // expected-error @below {{'lowlp.tanh' op computes in f16, bf16 or f32, but the tile holds 'si8': cast it first}}
  %t = lowlp.tanh %x : !lowlp.tile<32xsi8, spatial(32)>
  return
}

// -----

func.func @compare(%x: !lowlp.tile<32xsi6, spatial(32)>) {
  // expected-error @below {{'lowlp.compare' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'si6': cast it first}}
  %t = lowlp.compare lt %x, %x : !lowlp.tile<32xsi6, spatial(32)> -> !lowlp.tile<32xui1, spatial(32)>
  return
}

// -----

func.func @compare_result(%x: !lowlp.tile<32xf16, spatial(32)>) {
  // expected-error @below {{'lowlp.compare' op the condition must be '!lowlp.tile<32xui1, spatial(32)>', but is '!lowlp.tile<32xsi1, spatial(32)>'}}
  %t = lowlp.compare lt %x, %x : !lowlp.tile<32xf16, spatial(32)> -> !lowlp.tile<32xsi1, spatial(32)>
  return
}

// -----

func.func @select_layout(%c: !lowlp.tile<64xui1, local(2).spatial(32)>, %x: !lowlp.tile<64xf16, spatial(32).local(2)>) {
  // expected-error @below {{'lowlp.select' op the condition must be '!lowlp.tile<64xui1, spatial(32).local(2)>', but is '!lowlp.tile<64xui1, local(2).spatial(32)>'}}
  %t = lowlp.select %c, %x, %x : !lowlp.tile<64xui1, local(2).spatial(32)>, !lowlp.tile<64xf16, spatial(32).local(2)>
  return
}
