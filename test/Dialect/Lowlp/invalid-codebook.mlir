// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @below {{registers must be 0 to 8 entries, but is 9}}
func.func private @registers(!lowlp.codebook<256x8xf16, #lowlp.codebook_cache<registers = 9, shared = 0>>)

// -----

// expected-error @below {{shared must be 0 to 65536 entries, but is 65537}}
func.func private @shared(!lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 65537>>)

// -----

// expected-error @below {{copies must be a power of two up to 32, but is 3}}
func.func private @copies(!lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 3>>)

// -----

// expected-error @below {{without entries in shared memory there is 1 copy, and line_bytes and book_bytes are 0, but these are 2, 0 and 0}}
func.func private @no_shared(!lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 0, copies = 2>>)

// -----

// expected-error @below {{the cache keeps 0 entries in registers and 257 in shared memory, but a book has 256}}
func.func private @too_many(!lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 257, line_bytes = 16>>)

// -----

// expected-error @below {{line_bytes must be a multiple of the 16 bytes of an entry, at least the 128 of its copies, but is 64}}
func.func private @line(!lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 64>>)

// -----

// expected-error @below {{book_bytes of one book must be 0, but is 16}}
func.func private @one_book(!lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 256, line_bytes = 16, book_bytes = 16>>)

// -----

// expected-error @below {{book_bytes must be a multiple of the 16 bytes of an entry, with room for 2 books in the 256 bytes of a line, or at least the 65536 of all lines, but is 64}}
func.func private @books(!lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 256, book_bytes = 64>>)

// -----

// expected-error @below {{a codebook has 2 dimensions, entries and values, or 3 where there are several books, but the type has 1}}
func.func private @rank(!lowlp.codebook<256xf16>)

// -----

// expected-error @below {{entries of a codebook must be f16, bf16, si8 or f8E4M3FN, but are 'f32'}}
func.func private @element(!lowlp.codebook<256x8xf32>)

// -----

// expected-error @below {{an entry must have 2, 4, 8 or 16 values, but has 3}}
func.func private @vector(!lowlp.codebook<256x3xf16>)

// -----

// expected-error @below {{a codebook must have 1 to 65536 books of 2 to 65536 entries, but has 1 of 65537}}
func.func private @entries(!lowlp.codebook<65537x8xf16>)

// -----

// expected-error @below {{hits must be at least 0 and 1000 together, but are 0, 1 and 0}}
func.func private @hits() attributes {test.estimate = #lowlp.cache_estimate<register_hits = 0, shared_hits = 1, global_hits = 0, bank_passes = 100, fill_bytes = 0, gather_bytes = 0, reason = "">}

// -----

// expected-error @below {{bank_passes must be at least 100 hundredths, but is 99}}
func.func private @passes() attributes {test.estimate = #lowlp.cache_estimate<register_hits = 0, shared_hits = 1000, global_hits = 0, bank_passes = 99, fill_bytes = 0, gather_bytes = 0, reason = "">}

// -----

// expected-error @below {{fill_bytes and gather_bytes must be at least 0, but are -1 and 0}}
func.func private @bytes() attributes {test.estimate = #lowlp.cache_estimate<register_hits = 0, shared_hits = 1000, global_hits = 0, bank_passes = 100, fill_bytes = -1, gather_bytes = 0, reason = "">}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @not_a_view(%v: !view) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{the source must be a result of lowlp.view_global}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !books
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @elements(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{element types must match: the view holds 'f16', the codebook 'bf16'}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !lowlp.codebook<2x256x8xbf16>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @extents(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the last extents of the view must be 2x128x8, but the view is '!lowlp.global<4x2x256x8xf16>'}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !lowlp.codebook<2x128x8xf16>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @offsets(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{expected one offset for each of the 1 dimensions in front of the codebook, found 0}}
  %b = lowlp.load_codebook %v[] : !view -> !books
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @strides(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 8] strides [16, 1] : !lowlp.ptr<f16> -> !lowlp.global<256x8xf16>
  // expected-error @below {{entries must lie side by side: along dimension 0 of the view the stride must be 8}}
  %b = lowlp.load_codebook %v[] : !lowlp.global<256x8xf16> -> !lowlp.codebook<256x8xf16>
  return
}

// -----

func.func @lines(%p: !lowlp.ptr<f16>) {
  %v = lowlp.view_global %p shape [4, 256, 2] strides [2, 8, 1] : !lowlp.ptr<f16> -> !lowlp.global<4x256x2xf16>
  // expected-error @below {{books that lie side by side take a cache that has all of their 256 entries in shared memory}}
  %b = lowlp.load_codebook %v[] cache <shared = 200, line_bytes = 16, book_bytes = 4> : !lowlp.global<4x256x2xf16> -> !lowlp.codebook<4x256x2xf16>
  return
}

// -----

func.func @asynchronous(%p: !lowlp.ptr<f16>) {
  %v = lowlp.view_global %p shape [4, 256, 2] : !lowlp.ptr<f16> -> !lowlp.global<4x256x2xf16>
  // expected-error @below {{asynchronous copies take books that lie side by side: strides of the view must be [values, books * values, 1]}}
  %b = lowlp.load_codebook %v[] asynchronous : !lowlp.global<4x256x2xf16> -> !lowlp.codebook<4x256x2xf16>
  return
}

// -----

lowlp.kernel @spread(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %v = lowlp.view_global %p shape [256, 8] : !lowlp.ptr<f16> -> !lowlp.global<256x8xf16>
  // expected-error @below {{spread must be at least 100, hundredths of a pass, but is 99}}
  %b = lowlp.load_codebook %v[] spread 99 : !lowlp.global<256x8xf16> -> !lowlp.codebook<256x8xf16>
  lowlp.return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @selected(%p: !lowlp.ptr<f16>, %i: i1) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the codebook is used by arith.select; only lookups, switches, loops and branches use codebooks}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !books
  %s = arith.select %i, %b, %b : !books
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @repeated(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the codebook is taken again by each iteration of a loop: the loop must carry it}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !books
  scf.for %i = %c0 to %c0 step %c0 {
    %s = lowlp.switch_codebook %b to %v[%c0] : !view, !books
  }
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @used_after(%p: !lowlp.ptr<f16>, %codes: !part) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the codebook is used after another has taken its place}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !books
  // expected-note @below {{taken here}}
  %s = lowlp.switch_codebook %b to %v[%c0] : !view, !books
  // expected-note @below {{used here}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @argument_used_after(%p: !lowlp.ptr<f16>, %codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the codebook is used after another has taken its place}}
  // expected-note @below {{taken here}}
  %s = lowlp.switch_codebook %b to %v[%c0] : !view, !books
  // expected-note @below {{used here}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @no_tile(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{a codebook has a shared tile where its type has entries in shared memory, of which there are 4}}
  %b = lowlp.load_codebook %v[%c0] : !view -> !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 4, line_bytes = 32, book_bytes = 16>>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @tile(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<64xui8>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the shared tile must be !lowlp.shared<128xui8>, but is '!lowlp.shared<64xui8>'}}
  %b = lowlp.load_codebook %v[%c0] placed %s : !lowlp.shared<64xui8> : !view -> !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 4, line_bytes = 32, book_bytes = 16>>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @asked(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{asks for #lowlp.codebook_cache<shared = 8, line_bytes = 32, book_bytes = 16>, but the codebook has #lowlp.codebook_cache<registers = 1, shared = 0>}}
  %b = lowlp.load_codebook %v[%c0] cache <shared = 8, line_bytes = 32, book_bytes = 16> : !view -> !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<registers = 1, shared = 0>>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @asked_for_more(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{the cache keeps 0 entries in registers and 257 in shared memory, but a book has 256}}
  %b = lowlp.load_codebook %v[%c0] cache <shared = 257, line_bytes = 32, book_bytes = 16> : !view -> !books
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @frequencies(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2] : !lowlp.ptr<f16> -> !lowlp.global<4x2xf16>
  // expected-error @below {{expected the frequency of each of the 4 entries, found 2}}
  %b = lowlp.load_codebook %v[] frequencies [2, 1] : !lowlp.global<4x2xf16> -> !lowlp.codebook<4x2xf16>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @increasing(%p: !lowlp.ptr<f16>) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2] : !lowlp.ptr<f16> -> !lowlp.global<4x2xf16>
  // expected-error @below {{frequencies must begin above 0, not increase, and stay at least 0: entries are stored most frequent first}}
  %b = lowlp.load_codebook %v[] frequencies [2, 1, 0, 1] : !lowlp.global<4x2xf16> -> !lowlp.codebook<4x2xf16>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @all_fixed(%codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{a part names fewer than the 2 dimensions of the codes, but this one names 2}}
  %t = lowlp.lookup_vectors %codes part [0, 0] in %b[0] along 0 : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @part_index(%codes: !lowlp.tile<2x8x4xui8, local(2, 1, 1).spatial(1, 8, 4)>, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{index 0 of the part must be at least 0 and less than 2, but is 2}}
  %t = lowlp.lookup_vectors %codes part [2] in %b[0] along 0 : !lowlp.tile<2x8x4xui8, local(2, 1, 1).spatial(1, 8, 4)>, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @spread(%codes: !lowlp.tile<8x4x2xui8, spatial(8, 4, 1).local(1, 1, 2)>, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{each thread must hold all of the first 1 dimensions of the codes, which the layout spatial(8, 4, 1).local(1, 1, 2) spreads over threads}}
  %t = lowlp.lookup_vectors %codes part [1] in %b[0] along 0 : !lowlp.tile<8x4x2xui8, spatial(8, 4, 1).local(1, 1, 2)>, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @book_along(%codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{book_along must be at least 0 and less than 2, but is 2}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 book_along 2 : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<4x256x8xf16>
func.func @staggered(%codes: !part, %b: !books) {
  // expected-error @below {{staggered exchanges 8 neighbours, which do not divide the 4 books}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 staggered [0, 1, 2, 4] : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<4x256x8xf16>
func.func @stagger_masks(%codes: !part, %b: !books) {
  // expected-error @below {{staggered must name a dimension and at least one mask, but has 1 numbers}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 book_along 1 staggered [0] : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<4x256x8xf16>
func.func @stagger_dim(%codes: !part, %b: !books) {
  // expected-error @below {{staggered must name another dimension than book_along, at least 0 and less than 2, but names 1}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 book_along 1 staggered [1, 1] : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<4x256x8xf16>
func.func @stagger_mask(%codes: !part, %b: !books) {
  // expected-error @below {{masks of staggered must be 1 to 255, but one is 0}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 book_along 1 staggered [0, 0] : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<4x256x8xf16>
func.func @stagger_extent(%codes: !part, %b: !books) {
  // expected-error @below {{staggered exchanges the books of 8 neighbours, which do not divide the 4 along book_along}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 book_along 1 staggered [0, 1, 2, 4] : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @book(%codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{looks up in books 0 to 3, but there are 2}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 book_along 1 : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @signed(%codes: !lowlp.tile<16x4xsi8, local(2, 1).spatial(8, 4)>, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{codes must be unsigned integers, but are 'si8'}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 : !lowlp.tile<16x4xsi8, local(2, 1).spatial(8, 4)>, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @along(%codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{along must be at least 0 and less than 2, but is 2}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 2 : !part, !books -> !values
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @type(%codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{values must have the type of the entries, 'f16', but are 'bf16'}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 1 : !part, !books -> !lowlp.tile<16x32xbf16, local(2, 1).spatial(8, 4).local(1, 8)>
  return
}

// -----

!part = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!values = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
func.func @layout(%codes: !part, %b: !books) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{the layout of the result must be 'local(2, 1).spatial(8, 4).local(8, 1)', but is 'local(2, 1).spatial(8, 4).local(1, 8)'}}
  %t = lowlp.lookup_vectors %codes in %b[0] along 0 : !part, !books -> !values
  return
}

// -----

!books = !lowlp.codebook<2x256x8xf16>
!view = !lowlp.global<4x2x256x8xf16>
!few = !lowlp.tile<256x8xf16, local(8, 1).spatial(32, 1).local(1, 8)>
func.func @too_few_entries(%p: !lowlp.ptr<f16>, %b: !books, %rows: !few) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 2, 256, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{entries must be a tile of at least 512x8x'f16', but are '!lowlp.tile<256x8xf16}}
  %s = lowlp.switch_codebook %b to %v[%c0] entries %rows : !few : !view, !books
  return
}

// -----

!books = !lowlp.codebook<16x8xf16>
!view = !lowlp.global<4x16x8xf16>
!parts = !lowlp.tile<16x8xf16, spatial(16, 2).local(1, 4)>
func.func @entries_in_parts(%p: !lowlp.ptr<f16>, %b: !books, %rows: !parts) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 16, 8] : !lowlp.ptr<f16> -> !view
  // expected-error @below {{each thread must hold entries whole: their layout must end in local(1, 8), but is 'spatial(16, 2).local(1, 4)'}}
  %s = lowlp.switch_codebook %b to %v[%c0] entries %rows : !parts : !view, !books
  return
}
