// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --remarks-filter=lowlp-place-codebooks --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-place-codebooks{arch=sm_90a}))"

lowlp.kernel @too_large(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<codebooks = sc>} {
  %v = lowlp.view_global %p shape [65536, 8] : !lowlp.ptr<f16> -> !lowlp.global<65536x8xf16>
  // expected-error @below {{codebooks = sc needs 1048576 bytes of shared memory, but 232448 are free}}
  %b = lowlp.load_codebook %v[] : !lowlp.global<65536x8xf16> -> !lowlp.codebook<65536x8xf16>
  lowlp.return
}

// -----

!books = !lowlp.codebook<4x8xf16>
lowlp.kernel @two_caches(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %i1 = arith.constant true
  %v = lowlp.view_global %p shape [4, 8] : !lowlp.ptr<f16> -> !lowlp.global<4x8xf16>
  %r = scf.if %i1 -> (!books) {
    %a = lowlp.load_codebook %v[] cache <registers = 1, shared = 0> : !lowlp.global<4x8xf16> -> !books
    scf.yield %a : !books
  } else {
    // expected-error @below {{asks for #lowlp.codebook_cache<registers = 2, shared = 0>, but a load that its codebook meets asks for #lowlp.codebook_cache<registers = 1, shared = 0>}}
    %b = lowlp.load_codebook %v[] cache <registers = 2, shared = 0> : !lowlp.global<4x8xf16> -> !books
    scf.yield %b : !books
  }
  lowlp.return
}

// -----

lowlp.kernel @told(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<codebooks = gc>} {
  %v = lowlp.view_global %p shape [4, 8] : !lowlp.ptr<f16> -> !lowlp.global<4x8xf16>
  // expected-remark @below {{1 x 4 entries of 16 bytes: 0 in registers (0 bytes a thread), 0 in shared memory (0 bytes), 4 in global memory (64 bytes)}}
  %b = lowlp.load_codebook %v[] : !lowlp.global<4x8xf16> -> !lowlp.codebook<4x8xf16>
  lowlp.return
}
