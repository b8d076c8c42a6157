// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'lowlp.kernel' op has no results, but its type names 1}}
lowlp.kernel @results() -> i32 attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op must have a body}}
lowlp.kernel @declaration() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64}

// -----

// expected-error @below {{'lowlp.kernel' op num_threads must be a multiple of 32 up to 1024, but is 48}}
lowlp.kernel @part_of_a_warp() attributes {grid = affine_map<() -> (1)>, num_threads = 48 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op num_threads must be a multiple of 32 up to 1024, but is 2048}}
lowlp.kernel @too_many_threads() attributes {grid = affine_map<() -> (1)>, num_threads = 2048 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op num_threads must be a multiple of 32 up to 1024, but is 0}}
lowlp.kernel @no_threads() attributes {grid = affine_map<() -> (1)>, num_threads = 0 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op grid must have 1 to 3 extents, but has 4}}
lowlp.kernel @extents() attributes {grid = affine_map<() -> (1, 2, 3, 4)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op grid must have one dimension for each of the 1 integer parameters, but has 2 dimensions and 0 symbols}}
lowlp.kernel @dimensions(%m: i32, %x: f32) attributes {grid = affine_map<(m, n) -> (m)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op grid must have one dimension for each of the 1 integer parameters, but has 0 dimensions and 1 symbols}}
lowlp.kernel @symbols(%m: i32) attributes {grid = affine_map<()[m] -> (m)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 1 must be !lowlp.ptr, i32, i64 or f32, but is 'f16'}}
lowlp.kernel @float(%x: f32, %y: f16) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0 must be !lowlp.ptr, i32, i64 or f32, but is 'si32'}}
lowlp.kernel @signed(%m: si32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.name must be a string}}
lowlp.kernel @name(%m: i32 {lowlp.name = 3 : i64}) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.align must be a power of two on a pointer}}
lowlp.kernel @align(%p: !lowlp.ptr<f16> {lowlp.align = 12 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.align must be a power of two on a pointer}}
lowlp.kernel @align_of_integer(%m: i32 {lowlp.align = 16 : i64})
    attributes {grid = affine_map<(m) -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.align must be a power of two on a pointer}}
lowlp.kernel @align_type(%p: !lowlp.ptr<f16> {lowlp.align = 16 : ui64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.divisible_by must be a positive number on an integer}}
lowlp.kernel @divisor(%m: i32 {lowlp.divisible_by = 0 : i64})
    attributes {grid = affine_map<(m) -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.divisible_by must be a positive number on an integer}}
lowlp.kernel @divisor_of_pointer(%p: !lowlp.ptr<f16> {lowlp.divisible_by = 8 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

lowlp.kernel @indices() attributes {grid = affine_map<() -> (1, 2)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.block_indices' op has 1 results, but the grid has 2 extents}}
  %i = lowlp.block_indices : index
  lowlp.return
}

// -----

func.func @indices_outside() {
  // expected-error @below {{'lowlp.block_indices' op must lie in a lowlp.kernel}}
  %i = lowlp.block_indices : index
  return
}

// -----

func.func @return_outside() {
  // expected-error @below {{'lowlp.return' op expects parent op 'lowlp.kernel'}}
  lowlp.return
}

// -----

// The argument of a block of its own would be taken for the kernel's parameter, and its promise be believed.
// expected-error @below {{'lowlp.kernel' op must have one block, but has 2: control flow is scf's}}
lowlp.kernel @blocks(%m: i32 {lowlp.divisible_by = 2 : i64}) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c1 = arith.constant 1 : index
  cf.br ^next(%c1 : index)
^next(%offset: index):
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op with clusters of 4 blocks: the grid must have one extent, a multiple of it, but is affine_map<(d0) -> (d0 * 2)>}}
lowlp.kernel @uneven_cluster(%m: i32) attributes {grid = affine_map<(m) -> (m * 2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 4>} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op exchange_registers of its schedule needs whole warpgroups of 128 threads, but num_threads is 96}}
lowlp.kernel @part_of_warpgroup() attributes {grid = affine_map<() -> (1)>, num_threads = 96 : i64, schedule = #lowlp.schedule<exchange_registers = true>} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameters 0 and 2 are both called "x"}}
lowlp.kernel @twice(%a: !lowlp.ptr<f16> {lowlp.name = "x"}, %b: !lowlp.ptr<f32> {lowlp.name = "y"}, %c: !lowlp.ptr<f32> {lowlp.name = "x"})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.constant must be given without a value, and on a pointer}}
lowlp.kernel @constant_integer(%m: i32 {lowlp.constant}) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op parameter 0: lowlp.constant must be given without a value, and on a pointer}}
lowlp.kernel @constant_no(%p: !lowlp.ptr<f16> {lowlp.constant = "no"}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

lowlp.kernel @barrier() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'gpu.barrier' op does not belong in a lowlp.kernel, whose ops are of lowlp, scf, arith, math, ub; the barrier of a block is lowlp.synchronize}}
  gpu.barrier
  lowlp.return
}

// -----

lowlp.kernel @thread() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'gpu.thread_id' op does not belong in a lowlp.kernel, whose ops are of lowlp, scf, arith, math, ub}}
    %t = gpu.thread_id x
  }
  lowlp.return
}

// -----

lowlp.kernel @splat() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{'lowlp.splat' op makes a tile that is held by 32 threads, but a block has 64}}
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<32xf32, spatial(32)>
  lowlp.return
}
