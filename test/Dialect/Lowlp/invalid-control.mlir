// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @values(%n: index) {
  // expected-error @below {{'lowlp.print' op the text has 2 places {}, but there are 1 values}}
  lowlp.print "{} of {}" %n : index
  return
}

// -----

func.func @exit() {
  // expected-error @below {{'lowlp.exit' op must lie in a lowlp.kernel}}
  lowlp.exit
  return
}

// -----

func.func @divisor(%n: index) {
  // expected-error @below {{attribute 'divisor' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %m = lowlp.assume_divisible %n by 0
  return
}

// -----

lowlp.kernel @warpgroups() attributes {grid = affine_map<() -> (1)>, num_threads = 192 : i64} {
  // expected-error @below {{'lowlp.synchronize_warpgroups' op needs whole warpgroups of 128 threads, but the block has 192 threads}}
  lowlp.synchronize_warpgroups
  lowlp.return
}

// -----

lowlp.kernel @first_thread_of_warpgroups() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  lowlp.first_thread {
    // expected-error @below {{'lowlp.synchronize_warpgroups' op is the work of all threads and cannot stand in lowlp.first_thread}}
    lowlp.synchronize_warpgroups
  }
  lowlp.return
}

// -----

lowlp.kernel @first_thread() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.first_thread {
    // expected-error @below {{'lowlp.synchronize' op is the work of all threads and cannot stand in lowlp.first_thread}}
    lowlp.synchronize
  }
  lowlp.return
}

// -----

lowlp.kernel @first_thread_tile(%x: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.first_thread {
    // expected-error @below {{'lowlp.splat' op is the work of all threads and cannot stand in lowlp.first_thread}}
    %t = lowlp.splat %x : f32 -> !lowlp.tile<32xf32, spatial(32)>
  }
  lowlp.return
}

// -----

lowlp.kernel @producer() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %i = arith.constant 0 : index
  %b = lowlp.alloc_mbarriers arrivals 32 : !lowlp.mbarriers<1>
  lowlp.producer_warp {
    // expected-error @below {{'lowlp.mbarrier_arrive' op is the work of all threads and cannot stand in lowlp.producer_warp}}
    lowlp.mbarrier_arrive %b[%i] : !lowlp.mbarriers<1>
  }
  lowlp.return
}

// -----

lowlp.kernel @producer_place() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c = arith.constant true
  scf.if %c {
    // expected-error @below {{'lowlp.producer_warp' op must stand in the body of the kernel itself, but is in a scf.if}}
    lowlp.producer_warp {
    }
  }
  lowlp.return
}

// -----

lowlp.kernel @two_producers() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.producer_warp {
  }
  // expected-error @below {{'lowlp.producer_warp' op stands in the kernel twice}}
  lowlp.producer_warp {
  }
  lowlp.return
}

// -----

lowlp.kernel @late_producer(%x: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %t = lowlp.splat %x : f32 -> !lowlp.tile<32xf32, spatial(32)>
  // expected-error @below {{'lowlp.producer_warp' op must stand before lowlp.splat, which its warp would do too}}
  lowlp.producer_warp {
  }
  lowlp.return
}
