// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!view = !lowlp.global<4x2x256x8xf16>
!codes = !lowlp.global<16x4xui8>
!result = !lowlp.global<16x32xf16>

// Without a cache: the entry's place in global memory. The book must lie in the view.
// CHECK-LABEL: gpu.func @global
// CHECK: simt.assert %{{.*}}, "the codebook lies outside of the view"
// CHECK: %[[BOOK:.*]] = simt.offset %{{.*}}[%{{.*}}] : <global>
// CHECK-NOT: gpu.barrier
// CHECK: %[[CODE:.*]] = arith.andi %{{.*}}, %c255_i32 : i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[CODE]] : i32 to i64
// CHECK: %[[BYTES:.*]] = arith.muli %[[WIDE]], %c16_i64 : i64
// CHECK: %[[AT:.*]] = arith.addi %[[BYTES]], %c4096_i64 : i64
// CHECK: simt.load %[[BOOK]][%[[AT]]] align 16 : <global> -> vector<8xf16>
lowlp.kernel @global(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<f16>, %i: i32)
    attributes {grid = affine_map<(i) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %n = arith.index_cast %i : i32 to index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 32] : !lowlp.ptr<f16> -> !result
  %b = lowlp.load_codebook %v[%n] : !view -> !lowlp.codebook<2x256x8xf16>
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[1] along 1 : !part, !lowlp.codebook<2x256x8xf16> -> !values
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !values, !result
  lowlp.return
}

// In lines of 256 bytes: the lane's slot, 16 bytes for each of 8 copies, is byte 0 of the address and the code byte 1; book 1
// begins 128 bytes later. To fill it a thread takes 16 entries, 8 at once, and writes 8 copies of each.
!lines = !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 256, book_bytes = 128>>
// CHECK-LABEL: gpu.func @lines
// CHECK: %[[SHARED:.*]] = simt.shared_memory 0 : <shared>
// CHECK: scf.for %{{.*}} = %c0_i32 to %c512_i32 step %c256_i32
// CHECK-COUNT-8: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK: %[[TURNED:.*]] = arith.remui %{{.*}}, %c8_i32 : i32
// CHECK: arith.muli %[[TURNED]], %c16_i32 : i32
// CHECK-COUNT-64: simt.store %{{.*}} align 16 : vector<8xf16>, <shared>
// CHECK-NOT: simt.load
// CHECK-NOT: simt.store
// CHECK: gpu.barrier
// CHECK: %[[UP:.*]] = arith.shli %{{.*}}, %c4_i32 : i32
// CHECK: %[[SLOT:.*]] = arith.andi %[[UP]], %c112_i32 : i32
// CHECK: %[[ADDRESS:.*]] = simt.prmt %{{.*}}, %[[SLOT]] selector 30468
// CHECK: %[[BOOK1:.*]] = simt.offset %[[SHARED]][%c128_i64] : <shared>
// CHECK: %[[AT:.*]] = arith.extui %[[ADDRESS]] : i32 to i64
// CHECK: simt.load %[[BOOK1]][%[[AT]]] align 16 : <shared> -> vector<8xf16>
// CHECK: simt.prmt %{{.*}}, %[[SLOT]] selector 30484
lowlp.kernel @lines(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 32] : !lowlp.ptr<f16> -> !result
  %s = lowlp.alloc_shared : !lowlp.shared<65536xui8>
  %b = lowlp.load_codebook %v[%c0] placed %s : !lowlp.shared<65536xui8> : !view -> !lines
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[1] along 1 : !part, !lines -> !values
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !values, !result
  lowlp.return
}

// Books that lie side by side are copied 16 bytes at a time, here two of an entry: 256 lines of 32 bytes to lines of 64. Nobody
// waits before the op that does.
!far = !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, line_bytes = 64, book_bytes = 16>>
// CHECK-LABEL: gpu.func @asynchronous
// CHECK: scf.for %{{.*}} = %c0_i32 to %c512_i32 step %c256_i32
// CHECK: %[[LINE:.*]] = arith.divui %[[SLOT:.*]], %c2_i32
// CHECK: arith.muli %[[LINE]], %c64_i32
// CHECK: arith.remui %[[SLOT]], %c2_i32
// CHECK-COUNT-8: simt.copy_async %{{.*}} bytes 16 : <global> to <shared>
// CHECK-NOT: simt.copy_async %
// CHECK: simt.copy_async_commit
// CHECK-NOT: gpu.barrier
// CHECK: simt.copy_async_wait 0
lowlp.kernel @asynchronous(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [2, 256, 8] strides [8, 16, 1] : !lowlp.ptr<f16> -> !lowlp.global<2x256x8xf16>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 32] : !lowlp.ptr<f16> -> !result
  %s = lowlp.alloc_shared : !lowlp.shared<16384xui8>
  %b = lowlp.load_codebook %v[] asynchronous placed %s : !lowlp.shared<16384xui8>
    cache <shared = 256, line_bytes = 64, book_bytes = 16> : !lowlp.global<2x256x8xf16> -> !far
  lowlp.copy_async_wait 0
  lowlp.synchronize
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[1] along 1 : !part, !far -> !values
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !values, !result
  lowlp.return
}

// All three levels, of entries whose pointer is aligned to elements only; a code of 16 bits may name no entry.
!levels = !lowlp.codebook<300x4xf16, #lowlp.codebook_cache<registers = 1, shared = 20, line_bytes = 8>>
!wide = !lowlp.tile<8x4xui16, spatial(8, 4)>
!fours = !lowlp.tile<8x16xf16, spatial(8, 4).local(1, 4)>
// CHECK-LABEL: gpu.func @levels
// CHECK: %[[CODE:.*]] = arith.extui %{{.*}} : i16 to i32
// CHECK: %[[IS_ENTRY:.*]] = arith.cmpi ult, %[[CODE]], %c300_i32 : i32
// CHECK: simt.assert %[[IS_ENTRY]], "a code names no entry of the codebook"
// CHECK: %[[IS_HOT:.*]] = arith.cmpi ult, %[[CODE]], %c1_i32 : i32
// CHECK: scf.if %[[IS_HOT]] -> (vector<4xf16>)
// CHECK: arith.cmpi ult, %[[CODE]], %c20_i32 : i32
// CHECK: simt.load %{{.*}} align 8 : <shared> -> vector<4xf16>
// CHECK-COUNT-4: simt.load %{{.*}} align 2 : <global> -> vector<1xf16>
lowlp.kernel @levels(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui16>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [300, 4] : !lowlp.ptr<f16> -> !lowlp.global<300x4xf16>
  %w = lowlp.view_global %q shape [8, 4] : !lowlp.ptr<ui16> -> !lowlp.global<8x4xui16>
  %r = lowlp.view_global %y shape [8, 16] : !lowlp.ptr<f16> -> !lowlp.global<8x16xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<160xui8>
  %b = lowlp.load_codebook %v[] placed %s : !lowlp.shared<160xui8> : !lowlp.global<300x4xf16> -> !levels
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !lowlp.global<8x4xui16> -> !wide
  %t = lowlp.lookup_vectors %c in %b[0] along 1 : !wide, !levels -> !fours
  lowlp.store_global %t, %r[%c0, %c0] in_bounds : !fours, !lowlp.global<8x16xf16>
  lowlp.return
}

// A switch waits for lookups of the book before, fills, and waits again.
// CHECK-LABEL: gpu.func @switch
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: simt.store
// CHECK: gpu.barrier
// CHECK: simt.load %{{.*}} align 16 : <shared>
!small = !lowlp.codebook<2x8xf16, #lowlp.codebook_cache<shared = 2, line_bytes = 16>>
!bits = !lowlp.tile<8x4xui1, spatial(8, 4)>
!eights = !lowlp.tile<8x32xf16, spatial(8, 4).local(1, 8)>
lowlp.kernel @switch(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui1>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v = lowlp.view_global %p shape [4, 2, 8] : !lowlp.ptr<f16> -> !lowlp.global<4x2x8xf16>
  %w = lowlp.view_global %q shape [8, 4] : !lowlp.ptr<ui1> -> !lowlp.global<8x4xui1>
  %r = lowlp.view_global %y shape [8, 32] : !lowlp.ptr<f16> -> !lowlp.global<8x32xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<32xui8>
  %b = lowlp.load_codebook %v[%c0] placed %s : !lowlp.shared<32xui8> : !lowlp.global<4x2x8xf16> -> !small
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !lowlp.global<8x4xui1> -> !bits
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%book = %b) -> (!small) {
    %next = lowlp.switch_codebook %book to %v[%i] : !lowlp.global<4x2x8xf16>, !small
    %t = lowlp.lookup_vectors %c in %next[0] along 1 : !bits, !small -> !eights
    lowlp.store_global %t, %r[%c0, %c0] in_bounds : !eights, !lowlp.global<8x32xf16>
    scf.yield %next : !small
  }
  lowlp.return
}

// Entries that were loaded before are only written there, by the threads that have one.
// CHECK-LABEL: gpu.func @switch_to_loaded
// CHECK: scf.for
// CHECK: simt.load %{{.*}} align 16 : <global>
// CHECK: simt.load %{{.*}} align 16 : <shared>
// CHECK-NOT: simt.load {{.*}} : <global>
// CHECK: gpu.barrier
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %{{.*}}, %c2_i32 : i32
// CHECK: scf.if %[[EXISTS]]
// CHECK-NOT: simt.load
// CHECK: simt.store {{.*}} align 16 : vector<8xf16>, <shared>
// CHECK: gpu.barrier
!rows = !lowlp.tile<32x8xf16, spatial(32, 1).local(1, 8)>
lowlp.kernel @switch_to_loaded(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui1>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %v = lowlp.view_global %p shape [4, 2, 8] : !lowlp.ptr<f16> -> !lowlp.global<4x2x8xf16>
  %w = lowlp.view_global %q shape [8, 4] : !lowlp.ptr<ui1> -> !lowlp.global<8x4xui1>
  %r = lowlp.view_global %y shape [8, 32] : !lowlp.ptr<f16> -> !lowlp.global<8x32xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<32xui8>
  %b = lowlp.load_codebook %v[%c0] placed %s : !lowlp.shared<32xui8> : !lowlp.global<4x2x8xf16> -> !small
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !lowlp.global<8x4xui1> -> !bits
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%book = %b) -> (!small) {
    %entries = lowlp.load_global %v[%i, %c0, %c0] : !lowlp.global<4x2x8xf16> -> !rows
    %t = lowlp.lookup_vectors %c in %book[0] along 1 : !bits, !small -> !eights
    lowlp.store_global %t, %r[%c0, %c0] in_bounds : !eights, !lowlp.global<8x32xf16>
    %next = lowlp.switch_codebook %book to %v[%i] entries %entries : !rows : !lowlp.global<4x2x8xf16>, !small
    scf.yield %next : !small
  }
  lowlp.return
}

// Entries of si8 that are all cast to f16 are held with 128 added: once in the fill, and nowhere else. As they lie alike in both
// memories, 16 bytes are copied at a time.
!bytes = !lowlp.codebook<256x4xsi8, #lowlp.codebook_cache<shared = 256, copies = 1, line_bytes = 4>>
!raw = !lowlp.tile<16x16xsi8, local(2, 1).spatial(8, 4).local(1, 4)>
!halves = !lowlp.tile<16x16xf16, local(2, 1).spatial(8, 4).local(1, 4)>
// CHECK-LABEL: gpu.func @raised
// CHECK: %[[ENTRIES:.*]] = simt.load %{{.*}}[%[[PLACE:.*]]] align 16 : <global> -> vector<4xi32>
// CHECK: %[[RAISED:.*]] = arith.xori %[[ENTRIES]], %cst{{.*}} : vector<4xi32>
// CHECK: simt.store %[[RAISED]], %{{.*}}[%[[PLACE]]] align 16
// CHECK: gpu.barrier
// CHECK-NOT: arith.xori
// CHECK: simt.prmt %{{.*}} selector 16704
// CHECK: arith.subf
// CHECK: gpu.return
lowlp.kernel @raised(%p: !lowlp.ptr<si8> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 4] : !lowlp.ptr<si8> -> !lowlp.global<256x4xsi8>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<1024xui8>
  %b = lowlp.load_codebook %v[] placed %s : !lowlp.shared<1024xui8> : !lowlp.global<256x4xsi8> -> !bytes
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[0] along 1 : !part, !bytes -> !raw
  %h = lowlp.cast %t : !raw -> !halves
  lowlp.store_global %h, %r[%c0, %c0] in_bounds : !halves, !lowlp.global<16x16xf16>
  lowlp.return
}

// As integers of 16 bits they are the same bytes less 128, which a program that adds it again has for nothing.
!whole = !lowlp.codebook<256x4xsi8, #lowlp.codebook_cache<shared = 256, copies = 1, line_bytes = 16>>
!shorts = !lowlp.tile<16x16xsi16, local(2, 1).spatial(8, 4).local(1, 4)>
// CHECK-LABEL: gpu.func @raised_integers
// CHECK: arith.xori
// CHECK: gpu.barrier
// CHECK-NOT: arith.xori
// CHECK: simt.prmt %{{.*}}, %c0_i32 selector 16704
// CHECK: simt.prmt %{{.*}}, %c0_i32 selector 17218
// CHECK: arith.subi %{{.*}} : vector<8xi16>
// CHECK: gpu.return
lowlp.kernel @raised_integers(%p: !lowlp.ptr<si8> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<si16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 4] : !lowlp.ptr<si8> -> !lowlp.global<256x4xsi8>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 16] : !lowlp.ptr<si16> -> !lowlp.global<16x16xsi16>
  %s = lowlp.alloc_shared : !lowlp.shared<4096xui8>
  %b = lowlp.load_codebook %v[] placed %s : !lowlp.shared<4096xui8> : !lowlp.global<256x4xsi8> -> !whole
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[0] along 1 : !part, !whole -> !raw
  %h = lowlp.cast %t : !raw -> !shorts
  lowlp.store_global %h, %r[%c0, %c0] in_bounds : !shorts, !lowlp.global<16x16xsi16>
  lowlp.return
}

// Where some are used as they are, they are held so too.
!others = !lowlp.codebook<256x4xsi8, #lowlp.codebook_cache<shared = 256, copies = 2, line_bytes = 8>>
// CHECK-LABEL: gpu.func @as_they_are
// CHECK: simt.store
// CHECK: gpu.barrier
// CHECK: arith.xori
// CHECK: simt.prmt %{{.*}} selector 16704
lowlp.kernel @as_they_are(%p: !lowlp.ptr<si8> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<f16>, %z: !lowlp.ptr<si8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 4] : !lowlp.ptr<si8> -> !lowlp.global<256x4xsi8>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %i = lowlp.view_global %z shape [16, 16] : !lowlp.ptr<si8> -> !lowlp.global<16x16xsi8>
  %s = lowlp.alloc_shared : !lowlp.shared<2048xui8>
  %b = lowlp.load_codebook %v[] placed %s : !lowlp.shared<2048xui8> : !lowlp.global<256x4xsi8> -> !others
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[0] along 1 : !part, !others -> !raw
  %h = lowlp.cast %t : !raw -> !halves
  lowlp.store_global %t, %i[%c0, %c0] in_bounds : !raw, !lowlp.global<16x16xsi8>
  lowlp.store_global %h, %r[%c0, %c0] in_bounds : !halves, !lowlp.global<16x16xf16>
  lowlp.return
}

// To bf16 they are a difference of two, which one PRMT and two masks make.
!of_brains = !lowlp.codebook<256x4xsi8, #lowlp.codebook_cache<shared = 256, copies = 1, line_bytes = 8>>
!brains = !lowlp.tile<16x16xbf16, local(2, 1).spatial(8, 4).local(1, 4)>
// CHECK-LABEL: gpu.func @to_bf16
// CHECK: simt.load %{{.*}} : <global> -> vector<1xi32>
// CHECK-NOT: arith.xori
// CHECK: %[[PAIR:.*]] = simt.prmt %{{.*}}, %{{.*}} selector 16704
// CHECK-DAG: arith.andi %[[PAIR]], %c-8388737_i32
// CHECK-DAG: arith.andi %[[PAIR]], %c-8323200_i32
// CHECK: arith.subf %{{.*}} : vector<8xbf16>
// CHECK-NOT: arith.sitofp
// CHECK: gpu.return
lowlp.kernel @to_bf16(%p: !lowlp.ptr<si8> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 4] : !lowlp.ptr<si8> -> !lowlp.global<256x4xsi8>
  %w = lowlp.view_global %q shape [16, 4] : !lowlp.ptr<ui8> -> !codes
  %r = lowlp.view_global %y shape [16, 16] : !lowlp.ptr<bf16> -> !lowlp.global<16x16xbf16>
  %s = lowlp.alloc_shared : !lowlp.shared<2048xui8>
  %b = lowlp.load_codebook %v[] placed %s : !lowlp.shared<2048xui8> : !lowlp.global<256x4xsi8> -> !of_brains
  %c = lowlp.load_global %w[%c0, %c0] in_bounds : !codes -> !part
  %t = lowlp.lookup_vectors %c in %b[0] along 1 : !part, !of_brains -> !raw
  %h = lowlp.cast %t : !raw -> !brains
  lowlp.store_global %h, %r[%c0, %c0] in_bounds : !brains, !lowlp.global<16x16xbf16>
  lowlp.return
}
