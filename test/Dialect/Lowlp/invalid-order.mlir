// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @semaphore_type(%p: !lowlp.ptr<f32>, %i: index) {
  %v = lowlp.view_global %p shape [8] : !lowlp.ptr<f32> -> !lowlp.global<8xf32>
  // expected-error @below {{'lowlp.semaphore_acquire' op semaphores must be si32, but the view holds 'f32'}}
  lowlp.semaphore_acquire %v[%i], %i : !lowlp.global<8xf32>
  return
}

// -----

func.func @semaphore_view(%v: !lowlp.global<8xsi32>, %i: index) {
  // expected-error @below {{'lowlp.semaphore_release' op the view must be a result of lowlp.view_global}}
  lowlp.semaphore_release %v[%i], %i : !lowlp.global<8xsi32>
  return
}

// -----

func.func @semaphore_offsets(%p: !lowlp.ptr<si32>, %i: index) {
  %v = lowlp.view_global %p shape [8] : !lowlp.ptr<si32> -> !lowlp.global<8xsi32>
  // expected-error @below {{'lowlp.semaphore_release' op expected one offset for each of the view's 1 dimensions, found 2}}
  lowlp.semaphore_release %v[%i, %i], %i : !lowlp.global<8xsi32>
  return
}

// -----

func.func @atomic_view(%v: !lowlp.global<32xf32>, %t: !lowlp.tile<32xf32, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op the view must be a result of lowlp.view_global}}
  lowlp.atomic_rmw add %t, %v[%i] : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  return
}

// -----

func.func @atomic_element(%s: !lowlp.shared<32xf32>, %t: !lowlp.tile<32xsi32, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op element types must match: the tile holds 'si32', memory holds 'f32'}}
  lowlp.atomic_rmw add %t, %s[%i] : !lowlp.tile<32xsi32, spatial(32)>, !lowlp.shared<32xf32>
  return
}

// -----

func.func @atomic_kind(%s: !lowlp.shared<32xf32>, %t: !lowlp.tile<32xf32, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op there is no atomic max of 'f32'; si32 and ui32 have all kinds, f32, f16 and bf16 have add}}
  lowlp.atomic_rmw max %t, %s[%i] : !lowlp.tile<32xf32, spatial(32)>, !lowlp.shared<32xf32>
  return
}

// -----

func.func @atomic_narrow(%s: !lowlp.shared<32xui8>, %t: !lowlp.tile<32xui8, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op there is no atomic add of 'ui8'}}
  lowlp.atomic_rmw add %t, %s[%i] : !lowlp.tile<32xui8, spatial(32)>, !lowlp.shared<32xui8>
  return
}

// -----

func.func @atomic_offsets(%s: !lowlp.shared<2x32xf32>, %t: !lowlp.tile<32xf32, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op expected one offset for each of the 2 dimensions in memory, found 1}}
  lowlp.atomic_rmw add %t, %s[%i] : !lowlp.tile<32xf32, spatial(32)>, !lowlp.shared<2x32xf32>
  return
}

// -----

func.func @atomic_rank(%s: !lowlp.shared<32xf32>, %t: !lowlp.tile<1x32xf32, spatial(1, 32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op the tile has 2 dimensions, but memory has only 1}}
  lowlp.atomic_rmw add %t, %s[%i] : !lowlp.tile<1x32xf32, spatial(1, 32)>, !lowlp.shared<32xf32>
  return
}

// -----

lowlp.kernel @atomic_threads(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %s = lowlp.alloc_shared : !lowlp.shared<64xf32>
  %t = lowlp.splat %z : f32 -> !lowlp.tile<64xf32, spatial(64)>
  // expected-error @below {{'lowlp.atomic_rmw' op the tile is held by 64 threads, but a block has 32}}
  lowlp.atomic_rmw add %t, %s[%c0] : !lowlp.tile<64xf32, spatial(64)>, !lowlp.shared<64xf32>
  lowlp.return
}

// -----

func.func @atomic_old_replicas(%s: !lowlp.shared<1xf32>, %t: !lowlp.tile<1xf32, reduce(spatial(32), dims=[0], keep_dims=True)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op old values need a layout that holds each element once, but the tile's holds 32 places for 1 elements}}
  %old = lowlp.atomic_rmw add %t, %s[%i] : !lowlp.tile<1xf32, reduce(spatial(32), dims=[0], keep_dims=True)>, !lowlp.shared<1xf32> -> !lowlp.tile<1xf32, reduce(spatial(32), dims=[0], keep_dims=True)>
  return
}

// -----

func.func @atomic_old_type(%s: !lowlp.shared<32xf32>, %t: !lowlp.tile<32xf32, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.atomic_rmw' op the old values must have the type of the tile, '!lowlp.tile<32xf32, spatial(32)>', but have '!lowlp.tile<32xsi32, spatial(32)>'}}
  %old = lowlp.atomic_rmw add %t, %s[%i] : !lowlp.tile<32xf32, spatial(32)>, !lowlp.shared<32xf32> -> !lowlp.tile<32xsi32, spatial(32)>
  return
}

// -----

func.func @alloc_outside() {
  // expected-error @below {{'lowlp.alloc_global' op must lie in a lowlp.kernel}}
  %p = lowlp.alloc_global shape affine_map<() -> (8)> : !lowlp.ptr<f32>
  return
}

// -----

lowlp.kernel @alloc_shape() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.alloc_global' op shape must have at least one extent}}
  %p = lowlp.alloc_global shape affine_map<() -> ()> : !lowlp.ptr<f32>
  lowlp.return
}

// -----

lowlp.kernel @alloc_extent() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.alloc_global' op extents must be at least 1, but one is 0}}
  %p = lowlp.alloc_global shape affine_map<() -> (8, 0)> : !lowlp.ptr<f32>
  lowlp.return
}

// -----

lowlp.kernel @alloc_dimensions(%m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.alloc_global' op shape must have one dimension for each of the 1 integer parameters, but has 0 dimensions and 0 symbols}}
  %p = lowlp.alloc_global shape affine_map<() -> (8)> : !lowlp.ptr<f32>
  lowlp.return
}

// -----

lowlp.kernel @negative_divisor(%m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  // expected-error @below {{extents must divide by positive numbers only}}
  %a = lowlp.alloc_global shape affine_map<(m) -> (m ceildiv -16)> : !lowlp.ptr<f32>
  lowlp.return
}

// -----

lowlp.kernel @no_cluster() attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  // expected-error @below {{'lowlp.exchange_in_cluster' op the kernel has no clusters}}
  %a = lowlp.exchange_in_cluster %t : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  lowlp.return
}

// -----

lowlp.kernel @parts_of_cluster() attributes {grid = affine_map<() -> (4)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 4>} {
  %zero = arith.constant 0.0 : f32
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  // expected-error @below {{'lowlp.exchange_in_cluster' op the first dimension must be the 4 blocks of the cluster, but is 2}}
  %a = lowlp.exchange_in_cluster %t : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  lowlp.return
}

// -----

lowlp.kernel @spread_parts() attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : f32
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<2x16xf32, spatial(2, 16)>
  // expected-error @below {{'lowlp.exchange_in_cluster' op each thread must hold all parts, one after the other, but the tile is '!lowlp.tile<2x16xf32, spatial(2, 16)>'}}
  %a = lowlp.exchange_in_cluster %t : !lowlp.tile<2x16xf32, spatial(2, 16)>
  lowlp.return
}

// -----

lowlp.kernel @part_of_word() attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : f16
  %t = lowlp.splat %zero : f16 -> !lowlp.tile<2x32xf16, local(2, 1).spatial(1, 32)>
  // expected-error @below {{'lowlp.exchange_in_cluster' op a part must fill words of 32 bits in each thread, but 2 parts have 32 bits}}
  %a = lowlp.exchange_in_cluster %t : !lowlp.tile<2x32xf16, local(2, 1).spatial(1, 32)>
  lowlp.return
}

// -----

lowlp.kernel @other_shared() attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : f32
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  %s = lowlp.alloc_shared : !lowlp.shared<64xsi32>
  // expected-error @below {{'lowlp.exchange_in_cluster' op must go through '!lowlp.shared<36xsi32>', but goes through '!lowlp.shared<64xsi32>'}}
  %a = lowlp.exchange_in_cluster %t through %s : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)> through !lowlp.shared<64xsi32>
  lowlp.return
}

// -----

lowlp.kernel @exchange_in_loop() attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{'lowlp.exchange_in_cluster' op must not lie in a loop}}
    %a = lowlp.exchange_in_cluster %t : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  }
  lowlp.return
}
