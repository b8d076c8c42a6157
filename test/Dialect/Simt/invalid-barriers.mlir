// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @init_arrivals(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.mbarrier_init' op arrivals must be 1 to 1048575, but are 0}}
  simt.mbarrier_init %s[%i] arrivals 0 : !simt.ptr<shared>
  return
}

// -----

func.func @init_space(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.mbarrier_init' op the mbarrier must be in shared memory, but is '!simt.ptr<global>'}}
  simt.mbarrier_init %g[%i] arrivals 1 : !simt.ptr<global>
  return
}

// -----

func.func @arrive_bytes(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.mbarrier_arrive' op expected bytes must be 1 to 1048575, but are 1048576}}
  simt.mbarrier_arrive %s[%i] expects 1048576 : !simt.ptr<shared>
  return
}

// -----

func.func @arrive_space(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.mbarrier_arrive' op the mbarrier must be in shared memory}}
  simt.mbarrier_arrive %g[%i] : !simt.ptr<global>
  return
}

// -----

func.func @wait_space(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.mbarrier_wait' op the mbarrier must be in shared memory}}
  simt.mbarrier_wait %g[%i] parity %p : !simt.ptr<global>
  return
}

// -----

func.func @copy_source(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_bulk' op the source must be in global memory, but is '!simt.ptr<shared>'}}
  simt.copy_bulk %s[%i] to %s[%i] bytes 16 signals %s[%i] : !simt.ptr<shared> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @copy_destination(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_bulk' op the destination must be in shared memory}}
  simt.copy_bulk %g[%i] to %g[%i] bytes 16 signals %s[%i] : !simt.ptr<global> to !simt.ptr<global>, !simt.ptr<shared>
  return
}

// -----

func.func @copy_bytes(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_bulk' op bytes must be a multiple of 16 up to 1048575, but are 24}}
  simt.copy_bulk %g[%i] to %s[%i] bytes 24 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @back_space(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_bulk_to_global' op the source must be in shared memory}}
  simt.copy_bulk_to_global %g[%i] to %g[%i] bytes 16 : !simt.ptr<global> to !simt.ptr<global>
  return
}

// -----

func.func @back_bytes(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_bulk_to_global' op bytes must be a multiple of 16}}
  simt.copy_bulk_to_global %s[%i] to %g[%i] bytes 0 : !simt.ptr<shared> to !simt.ptr<global>
  return
}

// -----

func.func @wait_groups(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{attribute 'n' failed to satisfy constraint}}
  simt.copy_bulk_wait 8
  return
}

// -----

func.func @tensor_rank(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_tensor' op a box of 1 to 5 dimensions needs as many extents and offsets and one stride less, but a box of 2 has 2, 2 and 2}}
  simt.copy_tensor %m of %g extents [%i, %i] strides [%i, %i] at [%i, %i] to %s[%i] box [16, 64] element_bytes 2 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @tensor_box(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_tensor' op an extent of the box must be 1 to 256, but is 257}}
  simt.copy_tensor %m of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [257, 64] element_bytes 2 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @tensor_element(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_tensor' op element_bytes must be 1, 2 or 4, but is 8}}
  simt.copy_tensor %m of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64] element_bytes 8 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @tensor_swizzle(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_tensor' op swizzle must be 0, 32, 64 or 128, but is 16}}
  simt.copy_tensor %m of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64] element_bytes 2 swizzle 16 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @tensor_swizzle_row(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_tensor' op with a swizzle of 64 bytes, a row of the box must take as many, but takes 128}}
  simt.copy_tensor %m of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64] element_bytes 2 swizzle 64 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}

// -----

func.func @tensor_row(%m: !simt.tensor_map, %g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %p: i32) {
  // expected-error @below {{'simt.copy_tensor' op a row of the box must take a multiple of 16 bytes, but takes 8}}
  simt.copy_tensor %m of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 4] element_bytes 2 swizzle 0 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
  return
}
