// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --remarks-filter=lowlp-vectorize-lookups --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups))"

!ui2 = !lowlp.tile<64xui2, spatial(32).local(2)>
!ui4 = !lowlp.tile<64xui4, spatial(32).local(2)>
!ui16 = !lowlp.tile<64xui16, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
!plain = !lowlp.shared<16xf16>
!copies = !lowlp.shared<16x4xf16>

// What a lookup is must allow another table.
lowlp.kernel @forms(%p2: !lowlp.ptr<ui2>, %p4: !lowlp.ptr<ui4>, %p16: !lowlp.ptr<ui16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v2 = lowlp.view_global %p2 shape [64] : !lowlp.ptr<ui2> -> !lowlp.global<64xui2>
  %v4 = lowlp.view_global %p4 shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %v16 = lowlp.view_global %p16 shape [64] : !lowlp.ptr<ui16> -> !lowlp.global<64xui16>
  %slice = lowlp.load_global %v2[%c0] in_bounds : !lowlp.global<64xui2> -> !ui2
  %codes = lowlp.load_global %v4[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %long = lowlp.load_global %v16[%c0] in_bounds : !lowlp.global<64xui16> -> !ui16
  %plain = lowlp.alloc_shared : !plain
  %copies = lowlp.alloc_shared : !copies
  // expected-remark @below {{its codes come in several slices}}
  %a = lowlp.lookup %plain, %slice, %slice : !plain, !ui2, !ui2 -> !values
  // expected-remark @below {{the table has more than one dimension}}
  %b = lowlp.lookup %copies, %codes : !copies, !ui4 -> !values
  // expected-remark @below {{codes are no unsigned integers of up to 8 bits}}
  %c = lowlp.lookup %plain, %long : !plain, !ui16 -> !values
  lowlp.return
}

// -----

!ui6 = !lowlp.tile<64xui6, spatial(32).local(2)>
!ui8 = !lowlp.tile<64xui8, spatial(32).local(2)>
!single = !lowlp.tile<32xui6, spatial(32)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
!value = !lowlp.tile<32xf16, spatial(32)>
!entries = !lowlp.tile<256xf16, spatial(32).local(8)>
!table = !lowlp.shared<256xf16>

// Pairs of codes are looked up by as many bits as both have, by threads that hold both.
lowlp.kernel @pairs(%p6: !lowlp.ptr<ui6>, %p8: !lowlp.ptr<ui8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<table_form = pair, table_copies = 1>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %v6 = lowlp.view_global %p6 shape [64] : !lowlp.ptr<ui6> -> !lowlp.global<64xui6>
  %v8 = lowlp.view_global %p8 shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %sixes = lowlp.load_global %v6[%c0] in_bounds : !lowlp.global<64xui6> -> !single
  %bytes = lowlp.load_global %v8[%c0] in_bounds : !lowlp.global<64xui8> -> !ui8
  %entries = lowlp.splat %one : f16 -> !entries
  %table = lowlp.alloc_shared : !table
  lowlp.store_shared %entries, %table[%c0] : !entries, !table
  lowlp.synchronize
  // expected-remark @below {{threads hold an odd number of codes}}
  %a = lowlp.lookup %table, %sixes : !table, !single -> !value
  // expected-remark @below {{pairs have codes of up to 6 bits}}
  %b = lowlp.lookup %table, %bytes : !table, !ui8 -> !values
  lowlp.return
}

// -----

!ui6 = !lowlp.tile<64xui6, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
!entries = !lowlp.tile<64xf16, spatial(32).local(2)>
!table = !lowlp.shared<64xf16>

// 32 copies of 4096 pairs take 512 KiB.
lowlp.kernel @bytes(%p: !lowlp.ptr<ui6>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<table_form = pair, table_copies = 32>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui6> -> !lowlp.global<64xui6>
  %codes = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui6> -> !ui6
  %entries = lowlp.splat %one : f16 -> !entries
  %table = lowlp.alloc_shared : !table
  lowlp.store_shared %entries, %table[%c0] : !entries, !table
  lowlp.synchronize
  // expected-remark @below {{no table fits}}
  %a = lowlp.lookup %table, %codes : !table, !ui6 -> !values
  lowlp.return
}

// -----

!ui6 = !lowlp.tile<64xui6, spatial(32).local(2)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
!entries = !lowlp.tile<64xf16, spatial(32).local(2)>
!table = !lowlp.shared<64xf16>

// A register holds both values of a code of one bit.
lowlp.kernel @registers(%p: !lowlp.ptr<ui6>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<table_form = register>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui6> -> !lowlp.global<64xui6>
  %codes = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui6> -> !ui6
  %entries = lowlp.splat %one : f16 -> !entries
  %table = lowlp.alloc_shared : !table
  lowlp.store_shared %entries, %table[%c0] : !entries, !table
  lowlp.synchronize
  // expected-remark @below {{registers hold two entries}}
  %a = lowlp.lookup %table, %codes : !table, !ui6 -> !values
  lowlp.return
}
