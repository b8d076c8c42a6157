// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-decompose-bit-slices))" | FileCheck %s
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-decompose-bit-slices))" --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!words = !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)>
!codes = !lowlp.tile<16x64xui3, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!values = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!words7 = !lowlp.tile<1x1x224xui32, local(1, 1, 7).spatial(1, 1, 32)>
!codes7 = !lowlp.tile<16x64xui7, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!values7 = !lowlp.tile<16x64xbf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!s8 = !lowlp.shared<8xf16>
!pairs = !lowlp.shared<64x32x2xf16>
!copies = !lowlp.shared<128x32xbf16, local(64, 32).local(2, 1)>

// CHECK-LABEL: lowlp.kernel @pairs
// CHECK: lowlp.expand_table %{{.*}}, %[[TABLE:.*]] slices [2, 1]
// CHECK: %[[LOW:.*]] = lowlp.unpack %[[WORDS:.*]] from "lut3.f16" : {{.*}} -> !lowlp.tile<16x64xui2,
// CHECK-NEXT: %[[HIGH:.*]] = lowlp.unpack %[[WORDS]] from "lut3.f16" bit 2 : {{.*}} -> !lowlp.tile<16x64xui1,
// CHECK-NOT: ui3
// CHECK: lowlp.lookup_pairs %[[TABLE]], %[[LOW]], %[[HIGH]]
lowlp.kernel @pairs(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [1, 1, 96] : !lowlp.ptr<ui32> -> !lowlp.global<1x1x96xui32>
  %w = lowlp.view_global %q shape [16, 64] : !lowlp.ptr<f16> -> !lowlp.global<16x64xf16>
  %s = lowlp.alloc_shared : !s8
  %t = lowlp.alloc_shared : !pairs
  lowlp.expand_table %s, %t : !s8, !pairs
  lowlp.synchronize
  %words = lowlp.load_global %v[%c0, %c0, %c0] : !lowlp.global<1x1x96xui32> -> !words
  %codes = lowlp.unpack %words from "lut3.f16" : !words -> !codes
  %y = lowlp.lookup_pairs %t, %codes : !pairs, !codes -> !values
  lowlp.store_global %y, %w[%c0, %c0] : !values, !lowlp.global<16x64xf16>
  lowlp.return
}

// A second lookup in the table has no slices; then no lookup has.
// REMARK: [Missed] slices | Category:lowlp-decompose-bit-slices | Function=shared_table | Op=lowlp.unpack, Reason="the table of a lowlp.lookup_pairs cannot be looked up by slices"
// CHECK-LABEL: lowlp.kernel @shared_table
// CHECK: lowlp.expand_table %{{.*}}, %{{.*}} : !lowlp.shared<8xf16>
// CHECK: lowlp.unpack %{{.*}} from "lut3.f16" : {{.*}} -> !lowlp.tile<16x64xui3,
// CHECK: lowlp.lookup_pairs %{{.*}}, %{{.*}} : !lowlp.shared<64x32x2xf16>, !lowlp.tile<16x64xui3,
lowlp.kernel @shared_table(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<f16>, %c: !lowlp.ptr<ui3>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [1, 1, 96] : !lowlp.ptr<ui32> -> !lowlp.global<1x1x96xui32>
  %x = lowlp.view_global %c shape [16, 64] : !lowlp.ptr<ui3> -> !lowlp.global<16x64xui3>
  %w = lowlp.view_global %q shape [16, 64] : !lowlp.ptr<f16> -> !lowlp.global<16x64xf16>
  %s = lowlp.alloc_shared : !s8
  %t = lowlp.alloc_shared : !pairs
  lowlp.expand_table %s, %t : !s8, !pairs
  lowlp.synchronize
  %words = lowlp.load_global %v[%c0, %c0, %c0] : !lowlp.global<1x1x96xui32> -> !words
  %codes = lowlp.unpack %words from "lut3.f16" : !words -> !codes
  %others = lowlp.load_global %x[%c0, %c0] : !lowlp.global<16x64xui3> -> !codes
  %a = lowlp.lookup_pairs %t, %codes : !pairs, !codes -> !values
  %b = lowlp.lookup_pairs %t, %others : !pairs, !codes -> !values
  %y = lowlp.add %a, %b : !values
  lowlp.store_global %y, %w[%c0, %c0] : !values, !lowlp.global<16x64xf16>
  lowlp.return
}

// What is stored too stays whole; and so do, for its table's sake, the codes of @other.
// REMARK: Function=other_use | Op=lowlp.unpack, Reason="lowlp.store_global takes whole codes"
// CHECK-LABEL: lowlp.kernel @other_use
// CHECK: lowlp.unpack {{.*}} -> !lowlp.tile<16x64xui3,
// CHECK: lowlp.unpack {{.*}} -> !lowlp.tile<16x64xui3,
lowlp.kernel @other_use(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<f16>, %c: !lowlp.ptr<ui3>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = lowlp.view_global %p shape [2, 1, 96] : !lowlp.ptr<ui32> -> !lowlp.global<2x1x96xui32>
  %x = lowlp.view_global %c shape [16, 64] : !lowlp.ptr<ui3> -> !lowlp.global<16x64xui3>
  %w = lowlp.view_global %q shape [16, 64] : !lowlp.ptr<f16> -> !lowlp.global<16x64xf16>
  %s = lowlp.alloc_shared : !s8
  %t = lowlp.alloc_shared : !pairs
  lowlp.expand_table %s, %t : !s8, !pairs
  lowlp.synchronize
  %words = lowlp.load_global %v[%c0, %c0, %c0] : !lowlp.global<2x1x96xui32> -> !words
  %more = lowlp.load_global %v[%c1, %c0, %c0] : !lowlp.global<2x1x96xui32> -> !words
  %codes = lowlp.unpack %words from "lut3.f16" : !words -> !codes
  %other = lowlp.unpack %more from "lut3.f16" : !words -> !codes
  lowlp.store_global %codes, %x[%c0, %c0] : !codes, !lowlp.global<16x64xui3>
  %a = lowlp.lookup_pairs %t, %codes : !pairs, !codes -> !values
  %b = lowlp.lookup_pairs %t, %other : !pairs, !codes -> !values
  %y = lowlp.add %a, %b : !values
  lowlp.store_global %y, %w[%c0, %c0] : !values, !lowlp.global<16x64xf16>
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @entries
// CHECK: %[[FOUR:.*]] = lowlp.unpack %{{.*}} from "lut7.bf16" : {{.*}} -> !lowlp.tile<16x64xui4,
// CHECK-NEXT: %[[TWO:.*]] = lowlp.unpack %{{.*}} from "lut7.bf16" bit 4 : {{.*}} -> !lowlp.tile<16x64xui2,
// CHECK-NEXT: %[[ONE:.*]] = lowlp.unpack %{{.*}} from "lut7.bf16" bit 6 : {{.*}} -> !lowlp.tile<16x64xui1,
// CHECK: lowlp.lookup %{{.*}}, %[[FOUR]], %[[TWO]], %[[ONE]]
lowlp.kernel @entries(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [1, 1, 224] : !lowlp.ptr<ui32> -> !lowlp.global<1x1x224xui32>
  %w = lowlp.view_global %q shape [16, 64] : !lowlp.ptr<bf16> -> !lowlp.global<16x64xbf16>
  %t = lowlp.alloc_shared : !copies
  %words = lowlp.load_global %v[%c0, %c0, %c0] : !lowlp.global<1x1x224xui32> -> !words7
  %codes = lowlp.unpack %words from "lut7.bf16" : !words7 -> !codes7
  %y = lowlp.lookup %t, %codes : !copies, !codes7 -> !values7
  lowlp.store_global %y, %w[%c0, %c0] : !values7, !lowlp.global<16x64xbf16>
  lowlp.return
}
