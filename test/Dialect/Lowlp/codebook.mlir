// RUN: lowlp-opt %s | lowlp-opt | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | lowlp-opt | FileCheck %s

!codes = !lowlp.tile<2x16x4xui8, local(2, 1, 1).local(1, 2, 1).spatial(1, 8, 4)>
!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!columns = !lowlp.tile<128x4xf16, local(2, 1).spatial(8, 4).local(8, 1)>
!books = !lowlp.codebook<2x256x8xf16>
!cached = !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<registers = 2, shared = 128, copies = 8, line_bytes = 256, book_bytes = 128>>
!view = !lowlp.global<?x3x2x256x8xf16>
!entries = !lowlp.tile<512x8xf16, local(16, 1).spatial(32, 1).local(1, 8)>

// CHECK-LABEL: lowlp.kernel @books
lowlp.kernel @books(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui8>, %n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<codebooks = o2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = arith.index_castui %n : i32 to index
  %v = lowlp.view_global %p shape [%m, 3, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  %flat = lowlp.view_global %p shape [%m, 3, 512, 8] : !lowlp.ptr<f16> -> !lowlp.global<?x3x512x8xf16>
  %w = lowlp.view_global %q shape [2, 16, 4] : !lowlp.ptr<ui8> -> !lowlp.global<2x16x4xui8>
  %codes = lowlp.load_global %w[%c0, %c0, %c0] : !lowlp.global<2x16x4xui8> -> !codes
  // CHECK: lowlp.load_codebook %{{.*}}[%{{.*}}, %{{.*}}] cache <registers = 1, shared = 2, line_bytes = 32, book_bytes = 16> : !lowlp.global<?x3x2x256x8xf16> -> !lowlp.codebook<2x256x8xf16>
  %first = lowlp.load_codebook %v[%c0, %c1] cache <registers = 1, shared = 2, line_bytes = 32, book_bytes = 16> : !view -> !books
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%book = %first) -> (!books) {
    // CHECK: lowlp.switch_codebook %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : !lowlp.global<?x3x2x256x8xf16>, !lowlp.codebook<2x256x8xf16>
    %next = lowlp.switch_codebook %book to %v[%i, %c0] : !view, !books
    // CHECK: lowlp.lookup_vectors %{{.*}} part [1] in %{{.*}}[1] along 1 : !lowlp.tile<2x16x4xui8, {{.*}}>, !lowlp.codebook<2x256x8xf16> -> !lowlp.tile<16x32xf16,
    %t = lowlp.lookup_vectors %codes part [1] in %next[1] along 1 : !codes, !books -> !values
    %rows = lowlp.load_global %flat[%i, %c1, %c0, %c0] : !lowlp.global<?x3x512x8xf16> -> !entries
    // CHECK: lowlp.switch_codebook %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] entries %{{.*}} : !lowlp.tile<512x8xf16, {{.*}}> : !lowlp.global<?x3x2x256x8xf16>, !lowlp.codebook<2x256x8xf16>
    %after = lowlp.switch_codebook %next to %v[%i, %c1] entries %rows : !entries : !view, !books
    scf.yield %after : !books
  }
  %tile = lowlp.alloc_shared : !lowlp.shared<32768xui8>
  // CHECK: lowlp.load_codebook {{.*}} placed %{{.*}} : !lowlp.shared<32768xui8> estimate <register_hits = 100, shared_hits = 800, global_hits = 100, bank_passes = 100, fill_bytes = 8, gather_bytes = 9, reason = "why">
  // CHECK-SAME: -> !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<registers = 2, shared = 128, copies = 8, line_bytes = 256, book_bytes = 128>>
  %cached = lowlp.load_codebook %v[%c0, %c0] placed %tile : !lowlp.shared<32768xui8>
    estimate <register_hits = 100, shared_hits = 800, global_hits = 100, bank_passes = 100, fill_bytes = 8, gather_bytes = 9, reason = "why">
    : !view -> !cached
  %side = lowlp.view_global %p shape [2, 256, 8] strides [8, 16, 1] : !lowlp.ptr<f16> -> !lowlp.global<2x256x8xf16>
  // CHECK: lowlp.load_codebook %{{.*}}[] asynchronous cache <shared = 256, line_bytes = 32, book_bytes = 16> :
  %late = lowlp.load_codebook %side[] asynchronous cache <shared = 256, line_bytes = 32, book_bytes = 16>
    : !lowlp.global<2x256x8xf16> -> !books
  %part = lowlp.load_global %w[%c0, %c0, %c0] : !lowlp.global<2x16x4xui8> -> !part
  // CHECK: lowlp.lookup_vectors %{{.*}} in %{{.*}}[0] along 0
  %u = lowlp.lookup_vectors %part in %cached[0] along 0 : !part, !cached -> !columns
  lowlp.return
}

// One book a column; and the first ones of a book are the most frequent.
// CHECK-LABEL: lowlp.kernel @columns
lowlp.kernel @columns(%p: !lowlp.ptr<si8>, %q: !lowlp.ptr<ui16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 3, 2] : !lowlp.ptr<si8> -> !lowlp.global<4x3x2xsi8>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui16> -> !lowlp.global<16x4xui16>
  %codes = lowlp.load_global %w[%c0, %c0] : !lowlp.global<16x4xui16> -> !lowlp.tile<16x4xui16, local(2, 1).spatial(8, 4)>
  // CHECK: lowlp.load_codebook %{{.*}}[] frequencies [5, 5, 0] :
  %book = lowlp.load_codebook %v[] frequencies [5, 5, 0] : !lowlp.global<4x3x2xsi8> -> !lowlp.codebook<4x3x2xsi8>
  // CHECK: lowlp.load_codebook %{{.*}}[] spread 212 :
  %spread = lowlp.load_codebook %v[] spread 212 : !lowlp.global<4x3x2xsi8> -> !lowlp.codebook<4x3x2xsi8>
  // CHECK: lowlp.lookup_vectors %{{.*}} in %{{.*}}[0] along 1 book_along 1 :
  %t = lowlp.lookup_vectors %codes in %book[0] along 1 book_along 1
    : !lowlp.tile<16x4xui16, local(2, 1).spatial(8, 4)>, !lowlp.codebook<4x3x2xsi8> -> !lowlp.tile<16x8xsi8, local(2, 1).spatial(8, 4).local(1, 2)>
  lowlp.return
}

// All entries in shared memory: 8 of them are a matrix, which one lane each finds and four lanes get.
!all = !lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 128>>
!lanes = !lowlp.tile<16x2xui8, column_spatial(16, 2)>
!fragment = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @matrices
lowlp.kernel @matrices(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 8] : !lowlp.ptr<f16> -> !lowlp.global<256x8xf16>
  %w = lowlp.view_global %q shape [16, 2] : !lowlp.ptr<ui8> -> !lowlp.global<16x2xui8>
  %codes = lowlp.load_global %w[%c0, %c0] : !lowlp.global<16x2xui8> -> !lanes
  %tile = lowlp.alloc_shared : !lowlp.shared<32768xui8>
  %book = lowlp.load_codebook %v[] placed %tile : !lowlp.shared<32768xui8> : !lowlp.global<256x8xf16> -> !all
  // CHECK: lowlp.lookup_vectors {{.*}} -> !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
  %t = lowlp.lookup_vectors %codes in %book[0] along 1 : !lanes, !all -> !fragment
  lowlp.return
}
