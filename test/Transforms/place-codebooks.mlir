// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-place-codebooks{arch=sm_90a}))" | FileCheck %s

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>

// Two books of 256 entries of 16 bytes: 8 lanes read one book, so 8 copies; both share lines of 256 bytes.
// CHECK-LABEL: lowlp.kernel @copies
// CHECK-SAME: codebooks = ["codebook at place-codebooks.mlir:[[#@LINE+7]]: 2 x 256 entries of 16 bytes: 0 in registers (0 bytes a thread), 256 in shared memory (8 copies, 256 bytes apart, 65536 bytes), 0 in global memory (0 bytes); of 1000 lookups 0 in registers, 1000 in shared memory, 0 in global memory; 1.00 passes a phase; fills 8192 bytes, gathers 0 bytes in 1000 lookups; 8 lanes of a phase read 1 book, so that 8 copies have no bank conflicts; these fit into 232448 bytes"]
// CHECK: %[[TILE:.*]] = lowlp.alloc_shared : !lowlp.shared<65536xui8>
// CHECK: lowlp.load_codebook %{{.*}}[%{{.*}}] placed %[[TILE]] : !lowlp.shared<65536xui8> estimate <register_hits = 0, shared_hits = 1000, global_hits = 0, bank_passes = 100, fill_bytes = 8192, gather_bytes = 0, reason = "8 lanes
// CHECK: lowlp.lookup_vectors {{.*}} !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 256, book_bytes = 128>>
lowlp.kernel @copies(%p: !lowlp.ptr<f16>, %codes: !lowlp.ptr<ui8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  %b = lowlp.load_codebook %v[%c0] : !view -> !books
  %w = lowlp.view_global %codes shape [16, 4] : !lowlp.ptr<ui8> -> !lowlp.global<16x4xui8>
  %q = lowlp.load_global %w[%c0, %c0] : !lowlp.global<16x4xui8> -> !part
  %t = lowlp.lookup_vectors %q in %b[1] along 1 : !part, !books -> !values
  lowlp.return
}

// The type goes through loops, branches and switches; with two blocks on an SM 8 copies do not fit beside the other tile,
// and with 4 copies, which have conflicts, each book has all banks.
// CHECK-LABEL: lowlp.kernel @through
// CHECK: scf.for {{.*}} -> (!lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 4, line_bytes = 64, book_bytes = 16384>>)
// CHECK: scf.if {{.*}} -> (!lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 4, line_bytes = 64, book_bytes = 16384>>)
// CHECK: lowlp.switch_codebook {{.*}} !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 4, line_bytes = 64, book_bytes = 16384>>
lowlp.kernel @through(%p: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<blocks_per_sm = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %i1 = arith.constant true
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  %s = lowlp.alloc_shared : !lowlp.shared<60000xui8>
  %first = lowlp.load_codebook %v[%c0] : !view -> !books
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%b = %first) -> (!books) {
    %next = scf.if %i1 -> (!books) {
      %other = lowlp.switch_codebook %b to %v[%i] : !view, !books
      scf.yield %other : !books
    } else {
      scf.yield %b : !books
    }
    scf.yield %next : !books
  }
  lowlp.return
}

// A book for each column: the 4 lanes of a row read 4 books, so that 4 entries of 8 bytes each have 4 copies.
// CHECK-LABEL: lowlp.kernel @columns
// CHECK-SAME: 16 lanes of a phase read 4 books, so that 4 copies have no bank conflicts
// CHECK: #lowlp.codebook_cache<shared = 256, copies = 4, line_bytes = 256, book_bytes = 32>
lowlp.kernel @columns(%p: !lowlp.ptr<f16>, %codes: !lowlp.ptr<ui8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 256, 4] : !lowlp.ptr<f16> -> !lowlp.global<4x256x4xf16>
  %b = lowlp.load_codebook %v[] : !lowlp.global<4x256x4xf16> -> !lowlp.codebook<4x256x4xf16>
  %w = lowlp.view_global %codes shape [16, 4] : !lowlp.ptr<ui8> -> !lowlp.global<16x4xui8>
  %q = lowlp.load_global %w[%c0, %c0] : !lowlp.global<16x4xui8> -> !part
  %t = lowlp.lookup_vectors %q in %b[0] along 1 book_along 1 : !part, !lowlp.codebook<4x256x4xf16>
    -> !lowlp.tile<16x16xf16, local(2, 1).spatial(8, 4).local(1, 4)>
  lowlp.return
}

// Each of four lanes has a book of its own, so that a phase of 16 wants 4 copies of each: together a line of 128 bytes, or of
// 256 where there is room, in which a code of 8 bits is a byte of the address.
// CHECK-LABEL: lowlp.kernel @by_lanes
// CHECK-SAME: 256 in shared memory (4 copies, 256 bytes apart
// CHECK-SAME: 16 lanes of a phase read 4 books, so that 4 copies have no bank conflicts
!by_lanes = !lowlp.tile<8x4xui8, spatial(8, 4)>
lowlp.kernel @by_lanes(%p: !lowlp.ptr<f16>, %codes: !lowlp.ptr<ui8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 256, 4] : !lowlp.ptr<f16> -> !lowlp.global<4x256x4xf16>
  %w = lowlp.view_global %codes shape [8, 4] : !lowlp.ptr<ui8> -> !lowlp.global<8x4xui8>
  %b = lowlp.load_codebook %v[] : !lowlp.global<4x256x4xf16> -> !lowlp.codebook<4x256x4xf16>
  %q = lowlp.load_global %w[%c0, %c0] : !lowlp.global<8x4xui8> -> !by_lanes
  %t = lowlp.lookup_vectors %q in %b[2] along 1 staggered [1, 1, 2] : !by_lanes, !lowlp.codebook<4x256x4xf16>
    -> !lowlp.tile<8x16xf16, spatial(8, 4).local(1, 4)>
  lowlp.return
}

// Books exchanged by the row: the 4 lanes of each of 4 rows read 16 books, which need no copies.
// CHECK-LABEL: lowlp.kernel @staggered
// CHECK-SAME: 16 lanes of a phase read 16 books, so that 1 copy has no bank conflicts
// CHECK: #lowlp.codebook_cache<shared = 256, line_bytes = 256, book_bytes = 8>
!columns = !lowlp.tile<16x16xui8, local(2, 1).spatial(8, 4).local(1, 4)>
lowlp.kernel @staggered(%p: !lowlp.ptr<f16>, %codes: !lowlp.ptr<ui8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [16, 256, 4] : !lowlp.ptr<f16> -> !lowlp.global<16x256x4xf16>
  %b = lowlp.load_codebook %v[] : !lowlp.global<16x256x4xf16> -> !lowlp.codebook<16x256x4xf16>
  %w = lowlp.view_global %codes shape [16, 16] : !lowlp.ptr<ui8> -> !lowlp.global<16x16xui8>
  %q = lowlp.load_global %w[%c0, %c0] : !lowlp.global<16x16xui8> -> !columns
  %t = lowlp.lookup_vectors %q in %b[0] along 1 book_along 1 staggered [0, 5, 2] : !columns, !lowlp.codebook<16x256x4xf16>
    -> !lowlp.tile<16x64xf16, local(2, 1).spatial(8, 4).local(1, 16)>
  lowlp.return
}

// What does not fit: the most frequent entries, or none where all are alike.
// CHECK-LABEL: lowlp.kernel @large
// CHECK-SAME: 1048576 bytes do not fit into 132448, and no frequencies are known: L1 is as fast
// CHECK: -> !lowlp.codebook<65536x8xf16>
lowlp.kernel @large(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<100000xui8>
  %v = lowlp.view_global %p shape [65536, 8] : !lowlp.ptr<f16> -> !lowlp.global<65536x8xf16>
  %b = lowlp.load_codebook %v[] : !lowlp.global<65536x8xf16> -> !lowlp.codebook<65536x8xf16>
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @frequent
// CHECK-SAME: 512 bytes do not fit into 208; the first 6 entries get 907 of 1000 accesses
// CHECK: estimate <register_hits = 0, shared_hits = 907, global_hits = 93, bank_passes = 254, fill_bytes = 192, gather_bytes = 2976,
// CHECK-SAME: -> !lowlp.codebook<16x16xf16, #lowlp.codebook_cache<shared = 6, line_bytes = 32>>
lowlp.kernel @frequent(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<232240xui8>
  %v = lowlp.view_global %p shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %b = lowlp.load_codebook %v[] frequencies [90, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] : !lowlp.global<16x16xf16> -> !lowlp.codebook<16x16xf16>
  lowlp.return
}

// Those above the mean and three standard deviations are in registers, as VQ-LLM has it.
// CHECK-LABEL: lowlp.kernel @registers
// CHECK: #lowlp.codebook_cache<registers = 1, shared = 16, line_bytes = 16>
lowlp.kernel @registers(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<codebooks = o2>} {
  %v = lowlp.view_global %p shape [16, 8] : !lowlp.ptr<f16> -> !lowlp.global<16x8xf16>
  %b = lowlp.load_codebook %v[] frequencies [900, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] : !lowlp.global<16x8xf16> -> !lowlp.codebook<16x8xf16>
  lowlp.return
}

// A cache that is asked for.
// CHECK-LABEL: lowlp.kernel @asked
// CHECK-SAME: 1 in registers (32 bytes a thread), 9 in shared memory (2 copies, 64 bytes apart, 640 bytes), 246 in global memory (7872 bytes)
// CHECK: cache <registers = 1, shared = 10, copies = 2, line_bytes = 64, book_bytes = 32>
lowlp.kernel @asked(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<codebooks = gc>} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  %b = lowlp.load_codebook %v[%c0] cache <registers = 1, shared = 10, copies = 2, line_bytes = 64, book_bytes = 32> : !view -> !books
  lowlp.return
}

// Two copies of entries of 8 bytes take 2.87 passes in place of 2.92: the memory is left to other blocks.
// CHECK-LABEL: lowlp.kernel @two_copies_do_not_pay
// CHECK-SAME: 4096 in shared memory (1 copy, 8 bytes apart, 65536 bytes){{.*}} 2.92 passes a phase
lowlp.kernel @two_copies_do_not_pay(%p: !lowlp.ptr<si8>, %q: !lowlp.ptr<ui16>, %y: !lowlp.ptr<si8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [2, 4096, 8] : !lowlp.ptr<si8> -> !lowlp.global<2x4096x8xsi8>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui16> -> !lowlp.global<16x4xui16>
  %r = lowlp.view_global %y shape [16, 32] : !lowlp.ptr<si8> -> !lowlp.global<16x32xsi8>
  %b = lowlp.load_codebook %v[] : !lowlp.global<2x4096x8xsi8> -> !lowlp.codebook<2x4096x8xsi8>
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !lowlp.global<16x4xui16> -> !lowlp.tile<16x4xui16, local(2, 1).spatial(8, 4)>
  %t = lowlp.lookup_vectors %c in %b[1] along 1 : !lowlp.tile<16x4xui16, local(2, 1).spatial(8, 4)>, !lowlp.codebook<2x4096x8xsi8>
    -> !lowlp.tile<16x32xsi8, local(2, 1).spatial(8, 4).local(1, 8)>
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !lowlp.tile<16x32xsi8, local(2, 1).spatial(8, 4).local(1, 8)>, !lowlp.global<16x32xsi8>
  lowlp.return
}

// What goes through shared memory to another layout takes 4608 bytes with the padding of its rows, and leaves 208.
// CHECK-LABEL: lowlp.kernel @exchanged
// CHECK-SAME: 512 bytes do not fit into 208,
lowlp.kernel @exchanged(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<227632xui8>
  %v = lowlp.view_global %p shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %b = lowlp.load_codebook %v[] : !lowlp.global<16x16xf16> -> !lowlp.codebook<16x16xf16>
  %zero = arith.constant 0.0 : f32
  %a = lowlp.splat %zero : f32 -> !lowlp.tile<32x32xf32, local(1, 32).spatial(32, 1)>
  %t = lowlp.convert_layout %a : !lowlp.tile<32x32xf32, local(1, 32).spatial(32, 1)> -> !lowlp.tile<32x32xf32, local(32, 1).spatial(1, 32)>
  lowlp.return
}

// Sums that two warps put together go through shared memory; those of a warp do not.
// CHECK-LABEL: lowlp.kernel @sum_of_warps
// CHECK-SAME: 4 fit into 28352 bytes
lowlp.kernel @sum_of_warps(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<200000xui8>
  %v = lowlp.view_global %p shape [256, 8] : !lowlp.ptr<f16> -> !lowlp.global<256x8xf16>
  %b = lowlp.load_codebook %v[] : !lowlp.global<256x8xf16> -> !lowlp.codebook<256x8xf16>
  %zero = arith.constant 0.0 : f32
  %a = lowlp.splat %zero : f32 -> !lowlp.tile<64x16xf32, spatial(64, 1).local(1, 16)>
  %t = lowlp.reduce add %a dim 0 : !lowlp.tile<64x16xf32, spatial(64, 1).local(1, 16)> -> !lowlp.tile<16xf32, reduce(spatial(64, 1), dims=[0]).local(16)>
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @sum_of_lanes
// CHECK-SAME: 4 fit into 32448 bytes
lowlp.kernel @sum_of_lanes(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<200000xui8>
  %v = lowlp.view_global %p shape [256, 8] : !lowlp.ptr<f16> -> !lowlp.global<256x8xf16>
  %b = lowlp.load_codebook %v[] : !lowlp.global<256x8xf16> -> !lowlp.codebook<256x8xf16>
  %zero = arith.constant 0.0 : f32
  %a = lowlp.splat %zero : f32 -> !lowlp.tile<64x16xf32, spatial(64, 1).local(1, 16)>
  %t = lowlp.reduce add %a dim 1 : !lowlp.tile<64x16xf32, spatial(64, 1).local(1, 16)> -> !lowlp.tile<64xf32, spatial(64)>
  lowlp.return
}

// Codes that were chosen for one copy: no more are made, though there is room.
// CHECK-LABEL: lowlp.kernel @spread
// CHECK-SAME: 1024 in shared memory (1 copy, 8 bytes apart, 8192 bytes), {{.*}} 1.99 passes a phase; {{.*}} codes are spread for 1 copy, which the 16 lanes of a phase read in 1.99 passes by the kernel's count
lowlp.kernel @spread(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %v = lowlp.view_global %p shape [1024, 4] : !lowlp.ptr<f16> -> !lowlp.global<1024x4xf16>
  %b = lowlp.load_codebook %v[] spread 199 : !lowlp.global<1024x4xf16> -> !lowlp.codebook<1024x4xf16>
  lowlp.return
}

// Where they do not fit, they stay in global memory as others do.
// CHECK-LABEL: lowlp.kernel @spread_too_far
// CHECK-SAME: 0 in shared memory
lowlp.kernel @spread_too_far(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<228000xui8>
  %v = lowlp.view_global %p shape [1024, 4] : !lowlp.ptr<f16> -> !lowlp.global<1024x4xf16>
  %b = lowlp.load_codebook %v[] spread 199 : !lowlp.global<1024x4xf16> -> !lowlp.codebook<1024x4xf16>
  lowlp.return
}
