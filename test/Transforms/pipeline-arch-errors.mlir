// RUN: lowlp-opt %s --verify-diagnostics --pass-pipeline="builtin.module(lowlp.kernel(lowlp-pipeline{arch=sm_75}))"

// expected-error @below {{unknown architecture 'sm_75'; known are sm_80, sm_86,}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}
