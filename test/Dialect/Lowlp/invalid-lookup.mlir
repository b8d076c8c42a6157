// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

!codes = !lowlp.tile<32xui3, spatial(32)>
!values = !lowlp.tile<32xf16, spatial(32)>
func.func @rank(%s: !lowlp.shared<2x2x8xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup' op a table has 1 dimension, or 2 with copies, but this one has 3}}
  %t = lowlp.lookup %s, %c : !lowlp.shared<2x2x8xf16>, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<32xui3, spatial(32)>
!values = !lowlp.tile<32xf16, spatial(32)>
func.func @copies(%s: !lowlp.shared<8x256xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup' op a table has a power of two of copies, at most 128, but this one has 256}}
  %t = lowlp.lookup %s, %c : !lowlp.shared<8x256xf16>, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<32xui3, spatial(32)>
!words = !lowlp.tile<32xf32, spatial(32)>
func.func @copies_of_words(%s: !lowlp.shared<8x64xf32>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup' op a table has a power of two of copies, at most 32, but this one has 64}}
  %t = lowlp.lookup %s, %c : !lowlp.shared<8x64xf32>, !codes -> !words
  return
}

// -----

!values = !lowlp.tile<32xf16, spatial(32)>
func.func @codes(%s: !lowlp.shared<8xf16>, %c: !values) {
  // expected-error @below {{'lowlp.lookup' op codes must be integers, but are 'f16'}}
  %t = lowlp.lookup %s, %c : !lowlp.shared<8xf16>, !values -> !values
  return
}

// -----

!codes = !lowlp.tile<32xui3, spatial(32)>
!sums = !lowlp.tile<32xf32, spatial(32)>
func.func @result(%s: !lowlp.shared<8xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup' op the result must be '!lowlp.tile<32xf16, spatial(32)>', but is '!lowlp.tile<32xf32, spatial(32)>'}}
  %t = lowlp.lookup %s, %c : !lowlp.shared<8xf16>, !codes -> !sums
  return
}

// -----

!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @no_codes_of_entries(%s: !lowlp.shared<16xf16>) {
  // expected-error @below {{'lowlp.lookup' op expected at least one tile of codes}}
  %t = "lowlp.lookup"(%s) : (!lowlp.shared<16xf16>) -> !values
  return
}

// -----

!low = !lowlp.tile<32xui2, spatial(32)>
!high = !lowlp.tile<32xui1, spatial(32)>
!values = !lowlp.tile<32xf16, spatial(32)>
func.func @slices_of_few(%s: !lowlp.shared<4xf16>, %l: !low, %h: !high) {
  // expected-error @below {{'lowlp.lookup' op slices of 3 bits need an entry of 16 or 32 bits for every code of up to 8 bits, a power of two of them, without a swizzle, but the table is '!lowlp.shared<4xf16>'}}
  %t = lowlp.lookup %s, %l, %h : !lowlp.shared<4xf16>, !low, !high -> !values
  return
}

// -----

!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @no_codes(%s: !lowlp.shared<16x1x2xf16>) {
  // expected-error @below {{'lowlp.lookup_pairs' op expected at least one tile of codes}}
  %t = "lowlp.lookup_pairs"(%s) : (!lowlp.shared<16x1x2xf16>) -> !values
  return
}

// -----

!codes = !lowlp.tile<64xsi2, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @signed(%s: !lowlp.shared<16x1x2xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op such codes must be unsigned integers of up to 8 bits, but are 'si2'}}
  %t = lowlp.lookup_pairs %s, %c : !lowlp.shared<16x1x2xf16>, !codes -> !values
  return
}

// -----

!low = !lowlp.tile<64xui2, spatial(32).local(2)>
!high = !lowlp.tile<64xui1, local(2).spatial(32)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @layouts(%s: !lowlp.shared<64x1x2xf16>, %l: !low, %h: !high) {
  // expected-error @below {{'lowlp.lookup_pairs' op all slices must have the layout spatial(32).local(2), but one has local(2).spatial(32)}}
  %t = lowlp.lookup_pairs %s, %l, %h : !lowlp.shared<64x1x2xf16>, !low, !high -> !values
  return
}

// -----

!codes = !lowlp.tile<32xui2, spatial(32)>
!values = !lowlp.tile<32xf16, spatial(32)>
func.func @odd(%s: !lowlp.shared<16x1x2xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op each thread must hold pairs of codes, but holds 1}}
  %t = lowlp.lookup_pairs %s, %c : !lowlp.shared<16x1x2xf16>, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<64xui2, spatial(32).local(2)>
!values = !lowlp.tile<64xf32, spatial(32).local(2)>
func.func @floats(%s: !lowlp.shared<16x1x2xf32>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op the table must hold f16 or bf16, but holds 'f32'}}
  %t = lowlp.lookup_pairs %s, %c : !lowlp.shared<16x1x2xf32>, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<64xui7, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @wide(%s: !lowlp.shared<16384x1x2xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op codes in pairs have 1 to 6 bits, but these have 7}}
  %t = lowlp.lookup_pairs %s, %c : !lowlp.shared<16384x1x2xf16>, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<64xui2, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @shape(%s: !lowlp.shared<32x4x2xf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op the table of pairs must be of 16 x copies x 2 elements, but is 32x4x2}}
  %t = lowlp.lookup_pairs %s, %c : !lowlp.shared<32x4x2xf16>, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<64xui2, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
!table = !lowlp.shared<16x4x2xf16, local(1, 1, 2).local(16, 4, 1)>
func.func @apart(%s: !table, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op the values of a pair must lie side by side, without a swizzle, but the layout is}}
  %t = lowlp.lookup_pairs %s, %c : !table, !codes -> !values
  return
}

// -----

!codes = !lowlp.tile<64xui2, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
func.func @pairs_result(%s: !lowlp.shared<16x4x2xbf16>, %c: !codes) {
  // expected-error @below {{'lowlp.lookup_pairs' op the result must be '!lowlp.tile<64xbf16, spatial(32).local(2)>', but is '!lowlp.tile<64xf16, spatial(32).local(2)>'}}
  %t = lowlp.lookup_pairs %s, %c : !lowlp.shared<16x4x2xbf16>, !codes -> !values
  return
}

// -----

func.func @elements(%s: !lowlp.shared<4xf16>, %e: !lowlp.shared<16x4x2xbf16>) {
  // expected-error @below {{'lowlp.expand_table' op element types must match: the table holds 'f16', the expanded one holds 'bf16'}}
  lowlp.expand_table %s, %e : !lowlp.shared<4xf16>, !lowlp.shared<16x4x2xbf16>
  return
}

// -----

func.func @source(%s: !lowlp.shared<4x1xf16>, %e: !lowlp.shared<16x4x2xf16>) {
  // expected-error @below {{'lowlp.expand_table' op the table must have 1 dimension, but has 2}}
  lowlp.expand_table %s, %e : !lowlp.shared<4x1xf16>, !lowlp.shared<16x4x2xf16>
  return
}

// -----

func.func @expanded(%s: !lowlp.shared<4xf16>, %e: !lowlp.shared<16xf16>) {
  // expected-error @below {{'lowlp.expand_table' op the expanded table must have 2 or 3 dimensions, but has 1}}
  lowlp.expand_table %s, %e : !lowlp.shared<4xf16>, !lowlp.shared<16xf16>
  return
}

// -----

func.func @entries(%s: !lowlp.shared<12xf16>, %e: !lowlp.shared<12x4xf16>) {
  // expected-error @below {{'lowlp.expand_table' op a table with copies must hold a power of two of entries, without a swizzle, but is '!lowlp.shared<12x4xf16>'}}
  lowlp.expand_table %s, %e : !lowlp.shared<12xf16>, !lowlp.shared<12x4xf16>
  return
}

// -----

func.func @few(%s: !lowlp.shared<4xf16>, %e: !lowlp.shared<8x4xf16>) {
  // expected-error @below {{'lowlp.expand_table' op the table must have at least 8 entries, but has 4}}
  lowlp.expand_table %s, %e : !lowlp.shared<4xf16>, !lowlp.shared<8x4xf16>
  return
}

// -----

func.func @slices_of_entries(%s: !lowlp.shared<4xf16>, %e: !lowlp.shared<4x4xf16>) {
  // expected-error @below {{'lowlp.expand_table' op only tables of pairs have slices}}
  lowlp.expand_table %s, %e slices [1, 1] : !lowlp.shared<4xf16>, !lowlp.shared<4x4xf16>
  return
}

// -----

func.func @empty_slice(%s: !lowlp.shared<4xf16>, %e: !lowlp.shared<16x4x2xf16>) {
  // expected-error @below {{'lowlp.expand_table' op a slice has at least 1 bit, but one has 0}}
  lowlp.expand_table %s, %e slices [2, 0] : !lowlp.shared<4xf16>, !lowlp.shared<16x4x2xf16>
  return
}

// -----

func.func @slices(%s: !lowlp.shared<4xf16>, %e: !lowlp.shared<16x4x2xf16>) {
  // expected-error @below {{'lowlp.expand_table' op the slices must have 2 bits together, but have 3}}
  lowlp.expand_table %s, %e slices [2, 1] : !lowlp.shared<4xf16>, !lowlp.shared<16x4x2xf16>
  return
}

// -----

func.func @signed(%c: !lowlp.tile<8x4xsi8, spatial(8, 4)>, %t: !lowlp.shared<256x4xf32>, %s: !lowlp.tile<8x4xf32, spatial(8, 4)>, %i: index) {
  // expected-error @below {{'lowlp.add_lookups' op codes must be unsigned integers, but are 'si8'}}
  %0 = lowlp.add_lookups %c in %t[%i], %s : !lowlp.tile<8x4xsi8, spatial(8, 4)>, !lowlp.shared<256x4xf32>, !lowlp.tile<8x4xf32, spatial(8, 4)>
  return
}

// -----

func.func @flat(%c: !lowlp.tile<32xui8, spatial(32)>, %t: !lowlp.shared<256x4xf32>, %s: !lowlp.tile<32xf32, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.add_lookups' op codes must have 2 dimensions, rows and columns, but have 1}}
  %0 = lowlp.add_lookups %c in %t[%i], %s : !lowlp.tile<32xui8, spatial(32)>, !lowlp.shared<256x4xf32>, !lowlp.tile<32xf32, spatial(32)>
  return
}

// -----

func.func @columns_first(%c: !lowlp.tile<8x4xui8, spatial(8, 4)>, %t: !lowlp.shared<256x4xf32, column_local(256, 4)>, %s: !lowlp.tile<8x4xf32, spatial(8, 4)>, %i: index) {
  // expected-error @below {{'lowlp.add_lookups' op the table must be of f32, of entries by columns in row-major order, but is '!lowlp.shared<256x4xf32, column_local(256, 4)>'}}
  %0 = lowlp.add_lookups %c in %t[%i], %s : !lowlp.tile<8x4xui8, spatial(8, 4)>, !lowlp.shared<256x4xf32, column_local(256, 4)>, !lowlp.tile<8x4xf32, spatial(8, 4)>
  return
}

// -----

func.func @few_columns(%c: !lowlp.tile<8x4xui8, spatial(8, 4)>, %t: !lowlp.shared<256x2xf32>, %s: !lowlp.tile<8x4xf32, spatial(8, 4)>, %i: index) {
  // expected-error @below {{'lowlp.add_lookups' op the table must have at least 4 columns, but has 2}}
  %0 = lowlp.add_lookups %c in %t[%i], %s : !lowlp.tile<8x4xui8, spatial(8, 4)>, !lowlp.shared<256x2xf32>, !lowlp.tile<8x4xf32, spatial(8, 4)>
  return
}

// -----

func.func @wide_sums(%c: !lowlp.tile<8x8xui8, spatial(8, 4).local(1, 2)>, %t: !lowlp.shared<256x8xf32>, %s: !lowlp.tile<8x8xf32, spatial(8, 4).local(1, 2)>, %i: index) {
  // expected-error @below {{'lowlp.add_lookups' op the sums must be '!lowlp.tile<8x4xf32, spatial(8, 4)>', but are '!lowlp.tile<8x8xf32, spatial(8, 4).local(1, 2)>'}}
  %0 = lowlp.add_lookups %c in %t[%i], %s : !lowlp.tile<8x8xui8, spatial(8, 4).local(1, 2)>, !lowlp.shared<256x8xf32>, !lowlp.tile<8x8xf32, spatial(8, 4).local(1, 2)>
  return
}

// -----

func.func @late_column(%c: !lowlp.tile<8x4xui8, spatial(8, 4)>, %t: !lowlp.shared<256x8xf32>, %s: !lowlp.tile<8x4xf32, spatial(8, 4)>) {
  %c5 = arith.constant 5 : index
  // expected-error @below {{'lowlp.add_lookups' op the first column must be 0 to 4, but is 5}}
  %0 = lowlp.add_lookups %c in %t[%c5], %s : !lowlp.tile<8x4xui8, spatial(8, 4)>, !lowlp.shared<256x8xf32>, !lowlp.tile<8x4xf32, spatial(8, 4)>
  return
}
