// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-memory))"

!tile = !lowlp.tile<32xf32, spatial(32)>
!large = !lowlp.shared<50000xf32>
!other = !lowlp.shared<32449xsi8>

// Two tiles that are live together.
lowlp.kernel @together() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %x = lowlp.splat %one : f32 -> !tile
  %y = lowlp.cast %x : !tile -> !lowlp.tile<32xsi8, spatial(32)>
  // expected-note @below {{'!lowlp.shared<50000xf32>' takes 200000 bytes from 0 on}}
  %s = lowlp.alloc_shared : !large
  // expected-error @below {{'lowlp.alloc_shared' op does not fit: a block has at most 232448 bytes of shared memory, but its tiles take 232464}}
  // expected-note @below {{'!lowlp.shared<32449xsi8>' takes 32464 bytes from 200000 on}}
  %t = lowlp.alloc_shared : !other
  lowlp.store_shared %x, %s[%c0] : !tile, !large
  lowlp.store_shared %y, %t[%c0] : !lowlp.tile<32xsi8, spatial(32)>, !other
  %z = lowlp.load_shared %s[%c0] : !large -> !tile
  lowlp.return
}

// -----

lowlp.kernel @alone() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{does not fit: a block has at most 232448 bytes of shared memory, but its tiles take 1099511627776}}
  // expected-note @below {{takes 1099511627776 bytes}}
  %s = lowlp.alloc_shared : !lowlp.shared<4611686018427387904xf32>
  lowlp.return
}

// -----

!tile = !lowlp.tile<32xf32, spatial(32)>
lowlp.kernel @region() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  scf.execute_region {
    // expected-error @below {{'lowlp.alloc_shared' op scratch is used in a region of an op other than scf.for, scf.if and scf.while}}
    %s = lowlp.alloc_shared scratch : !lowlp.shared<32xf32>
    %x = lowlp.load_shared %s[%c0] : !lowlp.shared<32xf32> -> !tile
    scf.yield
  }
  lowlp.return
}
