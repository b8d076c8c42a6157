// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{products_in_flight must be 1 to 8, but is 9}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<products_in_flight = 9>} {
  lowlp.return
}

// -----

// expected-error @below {{ping_pong must be false where matrix_unit is warp: it is what warpgroups do}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<ping_pong = true>} {
  lowlp.return
}

// -----

// expected-error @below {{blocks_per_sm must be 0 to 32, but is -1}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<blocks_per_sm = -1>} {
  lowlp.return
}

// -----

// expected-error @below {{cluster must be 1 to 8 blocks, but is 9}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<cluster = 9>} {
  lowlp.return
}

// -----

// expected-error @below {{table_copies must be 0 or a power of two up to 32, but is 3}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<table_copies = 3>} {
  lowlp.return
}

// -----

// expected-error @below {{a schedule has no field 'matrx_unit'; the nearest is 'matrix_unit'}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrx_unit = warp>} {
  lowlp.return
}

// -----

// expected-error @below {{the schedule has the field 'cluster' twice}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<cluster = 2, cluster = 2>} {
  lowlp.return
}

// -----

// expected-error @below {{expected one of [warp, warpgroup] for what makes products, got: block}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = block>} {
  lowlp.return
}

// -----

// expected-error @below {{expected one of [auto, pair, entry, register] for how codes are looked up in shared memory, got: pairs}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<table_form = pairs>} {
  lowlp.return
}

// -----

// expected-error @below {{expected one of [auto, weights, accumulators] for where the offsets of decode plans are taken off, got: x}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<decode_offsets = x>} {
  lowlp.return
}

// -----

// expected-error @below {{expected integer value}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<ping_pong = "no">} {
  lowlp.return
}

// -----

lowlp.kernel @kernel(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
  // expected-error @below {{stages must be 2 to 9, but are 1}}
  } {lowlp.stages = #lowlp.stages<1>}
  lowlp.return
}

// -----

lowlp.kernel @kernel(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
  // expected-error @below {{stages must be 2 to 9, but are 10}}
  } {lowlp.stages = #lowlp.stages<10>}
  lowlp.return
}

// -----

// expected-error @below {{schedule must be a #lowlp.schedule, but is 3 : i64}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = 3 : i64} {
  lowlp.return
}
