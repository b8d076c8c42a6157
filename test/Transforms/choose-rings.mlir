// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings))" | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings{arch=sm_80}))" | FileCheck %s --check-prefix=ASYNC
// RUN: not lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings{arch=sm_75}))" 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: error: unknown architecture 'sm_75'

!matrices = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!words = !lowlp.tile<192xui32, local(3).spatial(64)>

// A ring for matrices, with a swizzle, and one for neighbouring words, which one copy moves. Nothing moves so far.
// CHECK-LABEL: lowlp.kernel @both
// CHECK: lowlp.load_global {{.*}} {lowlp.ring = #lowlp.ring<0 at[0, 0]>}
// CHECK: lowlp.load_global {{.*}} {lowlp.ring = #lowlp.ring<1 at[0]>}
// CHECK: lowlp.load_global {{.*}} {lowlp.ring = #lowlp.ring<1 at[0]>}
// CHECK: {lowlp.rings = #lowlp.rings<producer_warp fills[!lowlp.shared<3x32x64xf16, local(3, 1, 1).swizzle(local(32, 8), dim=1).local(1, 1, 8)>, !lowlp.shared<3x192xui32>]>}
// CHECK-NOT: lowlp.stages
// ASYNC-LABEL: lowlp.kernel @both
// ASYNC: #lowlp.ring<1 at[0]>
// ASYNC: #lowlp.ring<1 at[0]>
// ASYNC: {lowlp.rings = #lowlp.rings<all_threads fills[
lowlp.kernel @both(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %xs = lowlp.view_global %x shape [%n, 32, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x32x64xf16>
  %ws = lowlp.view_global %w shape [%n, 192] : !lowlp.ptr<ui32> -> !lowlp.global<?x192xui32>
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %xs[%i, %c0, %c0] : !lowlp.global<?x32x64xf16> -> !matrices
    %b = lowlp.load_global %ws[%i, %c0] : !lowlp.global<?x192xui32> -> !words
    %c = lowlp.load_global %ws[%i, %c0] : !lowlp.global<?x192xui32> -> !words
    lowlp.print_tile "a", %a : !matrices
    lowlp.print_tile "b", %b : !words
    lowlp.print_tile "c", %c : !words
  } {lowlp.stages = #lowlp.stages<3, producer = true>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

// What was chosen by hand stays.
// CHECK-LABEL: lowlp.kernel @by_hand
// CHECK: {lowlp.ring = #lowlp.ring<0 at[0]>}
// CHECK: {lowlp.rings = #lowlp.rings<all_threads fills[!lowlp.shared<5x64xf16>]>}
lowlp.kernel @by_hand(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<3>, lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<5x64xf16>]>}
  lowlp.return
}

// -----

!planes = !lowlp.tile<16x32xui32, local(2, 4).local(1, 2).spatial(8, 4)>

// Words of planes of bits, which ldmatrix reads by rows, have the swizzle of rows of 128 bytes.
// CHECK-LABEL: lowlp.kernel @planes
// CHECK: {lowlp.rings = #lowlp.rings<producer_warp fills[!lowlp.shared<3x16x32xui32, local(3, 1, 1).swizzle(local(16, 8), dim=1).local(1, 1, 4)>]>}
lowlp.kernel @planes(%x: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %xs = lowlp.view_global %x shape [%n, 16, 32] : !lowlp.ptr<ui32> -> !lowlp.global<?x16x32xui32>
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %xs[%i, %c0, %c0] : !lowlp.global<?x16x32xui32> -> !planes
    lowlp.print_tile "a", %a : !planes
  } {lowlp.stages = #lowlp.stages<3, producer = true>}
  lowlp.return
}
