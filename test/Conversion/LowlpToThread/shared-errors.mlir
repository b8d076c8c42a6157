// RUN: lowlp-opt %s --lowlp-convert-to-thread --split-input-file --verify-diagnostics

lowlp.kernel @together() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<50000xf32>
  // expected-error @below {{'lowlp.alloc_shared' op does not fit: a block has at most 232448 bytes of shared memory, of which 200000 are taken}}
  %t = lowlp.alloc_shared : !lowlp.shared<32449xsi8>
  lowlp.return
}

// -----

lowlp.kernel @alone() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.alloc_shared' op does not fit: a block has at most 232448 bytes of shared memory, of which 0 are taken}}
  %s = lowlp.alloc_shared : !lowlp.shared<4611686018427387904xf32>
  lowlp.return
}

// -----

lowlp.kernel @scratch() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.alloc_shared' op scratch has no place; run lowlp-plan-memory first}}
  %s = lowlp.alloc_shared scratch : !lowlp.shared<8xf32>
  lowlp.return
}
