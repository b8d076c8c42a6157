// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @load_align(%p: !simt.ptr<global>, %i: i64) {
  // expected-error @below {{'simt.load' op align must be 1, 2, 4, 8 or 16 bytes, but is 3}}
  %v = simt.load %p[%i] align 3 : !simt.ptr<global> -> i32
  return
}

// -----

func.func @load_align_range(%p: !simt.ptr<global>, %i: i64) {
  // expected-error @below {{'simt.load' op align must be 1, 2, 4, 8 or 16 bytes, but is 32}}
  %v = simt.load %p[%i] align 32 : !simt.ptr<global> -> i32
  return
}

// -----

func.func @store_align(%p: !simt.ptr<global>, %i: i64, %v: i32) {
  // expected-error @below {{'simt.store' op align must be 1, 2, 4, 8 or 16 bytes, but is 0}}
  simt.store %v, %p[%i] align 0 : i32, !simt.ptr<global>
  return
}

// -----

func.func @load_part_of_a_byte(%p: !simt.ptr<global>, %i: i64) {
  // expected-error @below {{'simt.load' op result #0 must be a scalar or vector of whole bytes, but got 'i6'}}
  %v = simt.load %p[%i] align 1 : !simt.ptr<global> -> i6
  return
}

// -----

func.func @shared_space() {
  // expected-error @below {{'simt.shared_memory' op the address must be in shared memory, but is '!simt.ptr<global>'}}
  %p = simt.shared_memory 0 : !simt.ptr<global>
  return
}

// -----

func.func @shared_offset() {
  // expected-error @below {{'simt.shared_memory' op offset must be a multiple of 16 bytes from 0 on, but is 24}}
  %p = simt.shared_memory 24 : !simt.ptr<shared>
  return
}

// -----

func.func @copy_direction(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64) {
  // expected-error @below {{'simt.copy_async' op must copy from global to shared memory, but copies from '!simt.ptr<shared>' to '!simt.ptr<global>'}}
  simt.copy_async %s[%i] to %g[%i] bytes 16 : !simt.ptr<shared> to !simt.ptr<global>
  return
}

// -----

func.func @copy_bytes(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64) {
  // expected-error @below {{'simt.copy_async' op bytes must be 4, 8 or 16, but is 2}}
  simt.copy_async %g[%i] to %s[%i] bytes 2 : !simt.ptr<global> to !simt.ptr<shared>
  return
}

// -----

func.func @copy_wait() {
  // expected-error @below {{'simt.copy_async_wait' op attribute 'n' failed to satisfy constraint}}
  simt.copy_async_wait 8
  return
}

// -----

// expected-error @below {{expected ::lowlp::simt::MemorySpace to be one of: global, shared, cluster}}
func.func private @space(!simt.ptr<constant>)
// expected-error @above {{failed to parse}}

// -----

func.func @map_shared(%p: !simt.ptr<global>, %block: i32) {
  // expected-error @below {{'simt.map_shared' op maps shared memory to that of the cluster, but maps '!simt.ptr<global>' to '!simt.ptr<cluster>'}}
  %q = simt.map_shared %p, %block : !simt.ptr<global> -> !simt.ptr<cluster>
  return
}

// -----

func.func @store_async(%p: !simt.ptr<shared>, %v: vector<2xi32>, %at: i64) {
  // expected-error @below {{'simt.store_async' op stores to shared memory of the cluster, but is given '!simt.ptr<shared>'}}
  simt.store_async %v, %p[%at] arrives [%at] : vector<2xi32>, !simt.ptr<shared>
  return
}
