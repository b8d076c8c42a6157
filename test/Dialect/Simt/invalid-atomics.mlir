// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @kind(%p: !simt.ptr<global>, %i: i64, %x: f32) {
  // expected-error @below {{'simt.atomic_rmw' op kind must be add for floats, but is exchange}}
  %old = simt.atomic_rmw exchange %x, %p[%i] : f32, !simt.ptr<global>
  return
}

// -----

func.func @acquire(%p: !simt.ptr<shared>, %i: i64, %x: i32) {
  // expected-error @below {{'simt.acquire' op the word must be in global memory, but is in '!simt.ptr<shared>'}}
  simt.acquire %x, %p[%i] : !simt.ptr<shared>
  return
}

// -----

func.func @release(%p: !simt.ptr<shared>, %i: i64, %x: i32) {
  // expected-error @below {{'simt.release' op the word must be in global memory, but is in '!simt.ptr<shared>'}}
  simt.release store %x, %p[%i] : !simt.ptr<shared>
  return
}
