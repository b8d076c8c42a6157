// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-to-thread

module {
  // expected-error @below {{'lowlp.kernel' op must lie in a kernel at the top level of the module}}
  lowlp.kernel @nested() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
    lowlp.return
  }
}
func.func private @beside()

// -----

func.func @outside(%x: !lowlp.tile<32xsi6, spatial(32)>) {
  // expected-error @below {{'lowlp.cast' op must lie in a kernel at the top level of the module}}
  %y = lowlp.cast %x : !lowlp.tile<32xsi6, spatial(32)> -> !lowlp.tile<32xf16, spatial(32)>
  return
}

// -----

lowlp.kernel @much() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{gives each thread 8193 elements; at most 8192 are allowed}}
  %t = lowlp.iota dim 0 : !lowlp.tile<262176xsi32, local(8193).spatial(32)>
  lowlp.return
}

// -----

lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}
// expected-error @below {{'func.func' op stands beside kernels; a program holds kernels alone}}
func.func @beside() {
  return
}
