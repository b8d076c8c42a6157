// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups))" | FileCheck %s
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups{form=pair copies=4}))" | FileCheck %s --check-prefix=FOUR
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups{form=entry}))" | FileCheck %s --check-prefix=ENTRY
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups{form=pair}))" | FileCheck %s --check-prefix=PAIR
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups{form=register}))" | FileCheck %s --check-prefix=REGISTER
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups))" --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!ui1 = !lowlp.tile<64xui1, spatial(32).local(2)>
!ui4 = !lowlp.tile<64xui4, spatial(32).local(2)>
!ui6 = !lowlp.tile<64xui6, spatial(32).local(2)>
!ui8 = !lowlp.tile<64xui8, spatial(32).local(2)>
!singles = !lowlp.tile<32xui4, spatial(32)>
!values = !lowlp.tile<64xf16, spatial(32).local(2)>
!t16 = !lowlp.tile<32xf16, spatial(32)>
!t64 = !lowlp.tile<64xf16, spatial(32).local(2)>
!t256 = !lowlp.tile<256xf16, spatial(32).local(8)>
!s2 = !lowlp.shared<2xf16>
!s16 = !lowlp.shared<16xf16>
!s64 = !lowlp.shared<64xf16>
!s256 = !lowlp.shared<256xf16>

// The table is filled after the barrier, once, before the outer loop.
// CHECK-LABEL: lowlp.kernel @loops
// CHECK-SAME: lowlp.report = {lookups = ["lookup at vectorize-lookups.mlir:{{[0-9]+}}: pairs of 4 bits, 32 copies, 32768 bytes"]
// CHECK: lowlp.store_shared
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: %[[PAIRS:.*]] = lowlp.alloc_shared : !lowlp.shared<256x32x2xf16>
// CHECK-NEXT: lowlp.expand_table %{{.*}}, %[[PAIRS]] : !lowlp.shared<16xf16>, !lowlp.shared<256x32x2xf16>
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: lowlp.lookup_pairs %[[PAIRS]], %{{.*}} : !lowlp.shared<256x32x2xf16>, !lowlp.tile<64xui4,
//
// REGISTER-LABEL: lowlp.kernel @loops
// REGISTER-SAME: left as it is: registers hold two entries
//
// FOUR-LABEL: lowlp.kernel @loops
// FOUR: lowlp.expand_table %{{.*}} : !lowlp.shared<16xf16>, !lowlp.shared<256x4x2xf16>
//
// ENTRY-LABEL: lowlp.kernel @loops
// ENTRY-SAME: entries of 4 bits, in the plain table
// ENTRY-NOT: lowlp.expand_table
// ENTRY: lowlp.lookup %
//
// PAIR-LABEL: lowlp.kernel @loops
// PAIR: lowlp.lookup_pairs
lowlp.kernel @loops(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// For a single lookup no table is worth filling.
// CHECK-LABEL: lowlp.kernel @once
// CHECK-SAME: entries of 4 bits, in the plain table
//
// PAIR-LABEL: lowlp.kernel @once
// PAIR-SAME: pairs of 4 bits, 1 copy, 1024 bytes
lowlp.kernel @once(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  lowlp.synchronize
  %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
  lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
  lowlp.return
}

// Without a barrier after the writes there is one more.
// CHECK-LABEL: lowlp.kernel @inside
// CHECK-SAME: pairs of 4 bits, 32 copies, 32768 bytes
// CHECK: lowlp.store_shared
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: lowlp.alloc_shared
// CHECK-NEXT: lowlp.expand_table
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: scf.for
lowlp.kernel @inside(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  scf.for %i = %c0 to %end step %c1 {
    lowlp.synchronize
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// A table that each iteration writes is filled in each.
// CHECK-LABEL: lowlp.kernel @refilled
// CHECK: scf.for
// CHECK: lowlp.synchronize
// CHECK: lowlp.store_shared
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: lowlp.alloc_shared
// CHECK-NEXT: lowlp.expand_table
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: lowlp.lookup_pairs
lowlp.kernel @refilled(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  scf.for %k = %c0 to %end step %c1 {
    lowlp.synchronize
    %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
    lowlp.store_shared %t, %s[%c0] : !t16, !s16
    lowlp.synchronize
    scf.for %i = %c0 to %end step %c1 {
      scf.for %j = %c0 to %end step %c1 {
        %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
        lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
      }
    }
  }
  lowlp.return
}

// A table that is written again stays.
// REMARK: [Missed] table | Category:lowlp-vectorize-lookups | Function=again | Op=lowlp.lookup, Reason="the table is written again after the first lookup"
// CHECK-LABEL: lowlp.kernel @again
// CHECK-SAME: left as it is: the table is written again after the first lookup
// CHECK-NOT: lowlp.expand_table
// CHECK: lowlp.lookup %
lowlp.kernel @again(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.synchronize
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  lowlp.return
}

// An asynchronous copy has arrived when all wait for it.
// CHECK-LABEL: lowlp.kernel @copied
// CHECK: lowlp.copy_async_wait 0
// CHECK-NEXT: lowlp.synchronize
// CHECK-NEXT: lowlp.alloc_shared
// CHECK-NEXT: lowlp.expand_table
lowlp.kernel @copied(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  lowlp.copy_async %v[%c0] to %s[%c0] shape [16] : !lowlp.global<16xf16> to !s16
  lowlp.copy_async_commit
  lowlp.copy_async_wait 0
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// REMARK: Function=in_flight | Op=lowlp.lookup, Reason="the copy into the table has not arrived before the first lookup"
// CHECK-LABEL: lowlp.kernel @in_flight
// CHECK-SAME: left as it is: the copy into the table has not arrived before the first lookup
// CHECK-NOT: lowlp.expand_table
lowlp.kernel @in_flight(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  lowlp.copy_async %v[%c0] to %s[%c0] shape [16] : !lowlp.global<16xf16> to !s16
  lowlp.copy_async_commit
  scf.for %i = %c0 to %end step %c1 {
    lowlp.copy_async_wait 0
    lowlp.synchronize
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// REMARK: Function=never_written | Op=lowlp.lookup, Reason="nothing writes the table"
// CHECK-LABEL: lowlp.kernel @never_written
// CHECK-SAME: left as it is: nothing writes the table
lowlp.kernel @never_written(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
  lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
  lowlp.return
}

// What a select gives may be any table.
// REMARK: Function=selected | Op=lowlp.lookup, Reason="other ops use the table"
// CHECK-LABEL: lowlp.kernel @selected
// CHECK-SAME: left as it is: other ops use the table
lowlp.kernel @selected(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  lowlp.synchronize
  %is = arith.cmpi eq, %end, %c0 : index
  %other = arith.select %is, %s, %s : !s16
  %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
  lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
  %z = lowlp.lookup %other, %codes : !s16, !ui4 -> !values
  lowlp.store_global %z, %v[%c0] : !values, !lowlp.global<16xf16>
  lowlp.return
}

// Codes of 8 bits have no pairs; of their entries each lane has words in a bank of its own.
// CHECK-LABEL: lowlp.kernel @bytes
// CHECK-SAME: entries of 8 bits, 64 copies, 32768 bytes
// CHECK: lowlp.expand_table %{{.*}}, %[[COPIES:.*]] : !lowlp.shared<256xf16>, !lowlp.shared<256x64xf16>
// CHECK: lowlp.lookup %[[COPIES]], %{{.*}} : !lowlp.shared<256x64xf16>, !lowlp.tile<64xui8,
//
// PAIR-LABEL: lowlp.kernel @bytes
// PAIR-SAME: left as it is: pairs have codes of up to 6 bits
lowlp.kernel @bytes(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui8> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [256] : !lowlp.ptr<f16> -> !lowlp.global<256xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui8> -> !ui8
  %s = lowlp.alloc_shared : !s256
  %t = lowlp.load_global %v[%c0] : !lowlp.global<256xf16> -> !t256
  lowlp.store_shared %t, %s[%c0] : !t256, !s256
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s256, !ui8 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<256xf16>
    }
  }
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @ones
// CHECK-SAME: entries of 1 bit, in registers
// CHECK: lowlp.lookup %
//
// ENTRY-LABEL: lowlp.kernel @ones
// ENTRY-SAME: entries of 1 bit, 2 copies, 8 bytes
//
// PAIR-LABEL: lowlp.kernel @ones
// PAIR-SAME: pairs of 1 bit, 1 copy, 16 bytes
lowlp.kernel @ones(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui1> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui1> -> !lowlp.global<64xui1>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui1> -> !ui1
  %s = lowlp.alloc_shared : !s2
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s2
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s2, !ui1 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// 64 entries are 32 words: no two lanes meet in a bank, and no table of pairs is as cheap.
// CHECK-LABEL: lowlp.kernel @sixes
// CHECK-SAME: entries of 6 bits, in the plain table
//
// PAIR-LABEL: lowlp.kernel @sixes
// PAIR-SAME: pairs of 6 bits, 1 copy, 16384 bytes
lowlp.kernel @sixes(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui6> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui6> -> !lowlp.global<64xui6>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui6> -> !ui6
  %s = lowlp.alloc_shared : !s64
  %t = lowlp.load_global %v[%c0] : !lowlp.global<64xf16> -> !t64
  lowlp.store_shared %t, %s[%c0] : !t64, !s64
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s64, !ui6 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<64xf16>
    }
  }
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @odd
// CHECK-SAME: entries of 4 bits, in the plain table
//
// PAIR-LABEL: lowlp.kernel @odd
// PAIR-SAME: left as it is: threads hold an odd number of codes
lowlp.kernel @odd(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [32] : !lowlp.ptr<ui4> -> !lowlp.global<32xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<32xui4> -> !singles
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !singles -> !t16
      lowlp.store_global %y, %v[%c0] : !t16, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// Another type of entries, and codes that have none: nothing is decided.
// REMARK: Function=others | Op=lowlp.lookup, Reason="the table has not an entry for every code"
// REMARK: Function=others | Op=lowlp.lookup, Reason="the table holds neither f16 nor bf16"
// CHECK-LABEL: lowlp.kernel @others
// CHECK-NOT: lowlp.lookups
// CHECK-NOT: lowlp.expand_table
// CHECK: lowlp.return
lowlp.kernel @others(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !lowlp.shared<8xf16>
  %f = lowlp.alloc_shared : !lowlp.shared<16xf32>
  %a = lowlp.lookup %s, %codes : !lowlp.shared<8xf16>, !ui4 -> !values
  %b = lowlp.lookup %f, %codes : !lowlp.shared<16xf32>, !ui4 -> !lowlp.tile<64xf32, spatial(32).local(2)>
  %c = lowlp.cast %b : !lowlp.tile<64xf32, spatial(32).local(2)> -> !values
  %y = lowlp.add %a, %c : !values
  lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
  lowlp.return
}

// Two tables share what there is: 48 KiB for those that the pass makes.
// CHECK-LABEL: lowlp.kernel @two
// CHECK-SAME: "lookup at vectorize-lookups.mlir:{{.*}}: pairs of 4 bits, 32 copies, 32768 bytes",
// CHECK-SAME: "lookup at vectorize-lookups.mlir:{{.*}}: pairs of 4 bits, 16 copies, 16384 bytes"
lowlp.kernel @two(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [16] : !lowlp.ptr<f16> -> !lowlp.global<16xf16>
  %w = lowlp.view_global %x shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %codes = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui4> -> !ui4
  %s = lowlp.alloc_shared : !s16
  %t = lowlp.load_global %v[%c0] : !lowlp.global<16xf16> -> !t16
  lowlp.store_shared %t, %s[%c0] : !t16, !s16
  %o = lowlp.alloc_shared : !s16
  lowlp.store_shared %t, %o[%c0] : !t16, !s16
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %s, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %y = lowlp.lookup %o, %codes : !s16, !ui4 -> !values
      lowlp.store_global %y, %v[%c0] : !values, !lowlp.global<16xf16>
    }
  }
  lowlp.return
}

// Packed codes lie in slices, which are put together in bytes: a code of 7 bits is a byte of the address where each
// entry has a line of 256 bytes, and so is a pair of 3 bits.
// CHECK-LABEL: lowlp.kernel @packed_sevens
// CHECK-SAME: entries of 7 bits, 128 copies, 32768 bytes
// CHECK: lowlp.expand_table %{{.*}} : !lowlp.shared<128xf16>, !lowlp.shared<128x128xf16>
lowlp.kernel @packed_sevens(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [128] : !lowlp.ptr<f16> -> !lowlp.global<128xf16>
  %y = lowlp.view_global %p shape [16, 64] : !lowlp.ptr<f16> -> !lowlp.global<16x64xf16>
  %w = lowlp.view_global %x shape [1, 1, 224] : !lowlp.ptr<ui32> -> !lowlp.global<1x1x224xui32>
  %s = lowlp.alloc_shared : !lowlp.shared<128xf16>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<128xf16> -> !lowlp.tile<128xf16, spatial(32).local(4)>
  lowlp.store_shared %t, %s[%c0] : !lowlp.tile<128xf16, spatial(32).local(4)>, !lowlp.shared<128xf16>
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %words = lowlp.load_global %w[%c0, %c0, %c0] : !lowlp.global<1x1x224xui32> -> !lowlp.tile<1x1x224xui32, local(1, 1, 7).spatial(1, 1, 32)>
      %codes = lowlp.unpack %words from "lut7.f16" : !lowlp.tile<1x1x224xui32, local(1, 1, 7).spatial(1, 1, 32)> -> !lowlp.tile<16x64xui7, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
      %z = lowlp.lookup %s, %codes : !lowlp.shared<128xf16>, !lowlp.tile<16x64xui7, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)> -> !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
      lowlp.store_global %z, %y[%c0, %c0] : !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.global<16x64xf16>
    }
  }
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @packed_threes
// CHECK-SAME: pairs of 3 bits, 64 copies, 16384 bytes
// CHECK: lowlp.expand_table %{{.*}} : !lowlp.shared<32xf16>, !lowlp.shared<64x64x2xf16>
lowlp.kernel @packed_threes(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %y = lowlp.view_global %p shape [16, 64] : !lowlp.ptr<f16> -> !lowlp.global<16x64xf16>
  %w = lowlp.view_global %x shape [1, 1, 96] : !lowlp.ptr<ui32> -> !lowlp.global<1x1x96xui32>
  %s = lowlp.alloc_shared : !lowlp.shared<32xf16>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32).local(1)>
  lowlp.store_shared %t, %s[%c0] : !lowlp.tile<32xf16, spatial(32).local(1)>, !lowlp.shared<32xf16>
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %words = lowlp.load_global %w[%c0, %c0, %c0] : !lowlp.global<1x1x96xui32> -> !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)>
      %codes = lowlp.unpack %words from "lut3.f16" : !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)> -> !lowlp.tile<16x64xui3, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
      %z = lowlp.lookup %s, %codes : !lowlp.shared<32xf16>, !lowlp.tile<16x64xui3, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)> -> !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
      lowlp.store_global %z, %y[%c0, %c0] : !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.global<16x64xf16>
    }
  }
  lowlp.return
}

// The bits of a code are bits of an address only where the plain table has a power of two of entries.
// CHECK-LABEL: lowlp.kernel @packed_sixes
// CHECK-SAME: entries of 6 bits, 1 copy, 128 bytes
// CHECK: lowlp.expand_table %{{.*}} : !lowlp.shared<96xf16>, !lowlp.shared<64x1xf16>
lowlp.kernel @packed_sixes(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %x: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<f16> -> !lowlp.global<96xf16>
  %y = lowlp.view_global %p shape [16, 64] : !lowlp.ptr<f16> -> !lowlp.global<16x64xf16>
  %w = lowlp.view_global %x shape [1, 1, 192] : !lowlp.ptr<ui32> -> !lowlp.global<1x1x192xui32>
  %s = lowlp.alloc_shared : !lowlp.shared<96xf16>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<96xf16> -> !lowlp.tile<96xf16, spatial(32).local(3)>
  lowlp.store_shared %t, %s[%c0] : !lowlp.tile<96xf16, spatial(32).local(3)>, !lowlp.shared<96xf16>
  lowlp.synchronize
  scf.for %i = %c0 to %end step %c1 {
    scf.for %j = %c0 to %end step %c1 {
      %words = lowlp.load_global %w[%c0, %c0, %c0] : !lowlp.global<1x1x192xui32> -> !lowlp.tile<1x1x192xui32, local(1, 1, 3).spatial(1, 1, 32).local(1, 1, 2)>
      %codes = lowlp.unpack %words from "lut6.f16" : !lowlp.tile<1x1x192xui32, local(1, 1, 3).spatial(1, 1, 32).local(1, 1, 2)> -> !lowlp.tile<16x64xui6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
      %z = lowlp.lookup %s, %codes : !lowlp.shared<96xf16>, !lowlp.tile<16x64xui6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)> -> !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
      lowlp.store_global %z, %y[%c0, %c0] : !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>, !lowlp.global<16x64xf16>
    }
  }
  lowlp.return
}
