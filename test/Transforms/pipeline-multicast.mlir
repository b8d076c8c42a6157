// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings))" | FileCheck %s --check-prefix=RINGS
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings,lowlp-pipeline),canonicalize,cse)" | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-expand-clusters,lowlp-choose-rings))" | FileCheck %s --check-prefix=CPU

!matrices = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!row = !lowlp.tile<64xf16, spatial(64)>

// %x is the same for both blocks of a cluster, as its place follows from the number of the cluster; %w is each block's own.
// RINGS-LABEL: lowlp.kernel @pairs
// RINGS: lowlp.rings = #lowlp.rings<producer_warp fills[{{.*}}] multicast[0]>
// RINGS-NOT: lowlp.multicast
// CPU-LABEL: lowlp.kernel @pairs
// CPU: lowlp.rings = #lowlp.rings<producer_warp fills[{{[^]]*}}]>

// Warps of both blocks arrive at the mbarriers of each, which says that what both copied to its place has been read; and a
// producer ends after all have.
// CHECK-LABEL: lowlp.kernel @pairs
// CHECK-SAME: by tensor copies of a producer warp, 1 of 2 by multicast to 2 blocks
// CHECK: %[[FULL:.*]] = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
// CHECK: %[[EMPTY:.*]] = lowlp.alloc_mbarriers arrivals 4 by_warps {lowlp.multicast = #lowlp.multicast<2>} : !lowlp.mbarriers<3>
// CHECK: lowlp.producer_warp {
// CHECK: %[[NEXT:.*]]:2 = scf.for
// CHECK: lowlp.mbarrier_wait %[[EMPTY]]
// CHECK: lowlp.mbarrier_expect_bytes %[[FULL]][%{{.*}}] bytes 4224
// CHECK: lowlp.copy_tensor {{.*}} shape [32, 64] signals %[[FULL]][%{{.*}}] {lowlp.multicast = #lowlp.multicast<2>}
// CHECK: lowlp.copy_tensor {{.*}} shape [64] signals %[[FULL]][%{{.*}}] : 
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args(%[[PLACE:.*]] = %[[NEXT]]#0, %[[PARITY:.*]] = %[[NEXT]]#1)
// CHECK: %[[BEFORE:.*]] = arith.xori %[[PARITY]], %c1
// CHECK: lowlp.mbarrier_wait %[[EMPTY]][%[[PLACE]]] parity %[[BEFORE]]
// CHECK: } {lowlp.multicast = #lowlp.multicast<2>}
lowlp.kernel @pairs(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m * 2)>, num_threads = 64 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : i32
  %most = arith.constant 0x80000000 : index
  %n = arith.index_cast %m : i32 to index
  %block = lowlp.block_indices : index
  %small = arith.remui %block, %most : index
  %narrow = arith.index_castui %small : index to i32
  %half = arith.divui %narrow, %c2 : i32
  %pair = arith.index_castui %half : i32 to index
  %xs = lowlp.view_global %x shape [%n, %n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x?x64xf16>
  %ws = lowlp.view_global %w shape [%n, %n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %xs[%i, %pair, %c0] : !lowlp.global<?x?x64xf16> -> !matrices
    %b = lowlp.load_global %ws[%i, %block, %c0] : !lowlp.global<?x?x64xf16> -> !row
    lowlp.print_tile "a", %a : !matrices
    lowlp.print_tile "b", %b : !row
  } {lowlp.stages = #lowlp.stages<3, producer = true>, lowlp.multicast = #lowlp.multicast<2>}
  lowlp.return
}

// -----

!matrices = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// Blocks that may make other iterations copy for themselves; and so do those without a producer.
// RINGS-LABEL: lowlp.kernel @other_iterations
// RINGS: fills[{{[^]]*}}]>
// RINGS: first_thread fills[{{[^]]*}}]>
lowlp.kernel @other_iterations(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m * 2)>, num_threads = 64 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %block = lowlp.block_indices : index
  %xs = lowlp.view_global %x shape [%n, 32, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x32x64xf16>
  scf.for %i = %c0 to %block step %c1 {
    %a = lowlp.load_global %xs[%i, %c0, %c0] : !lowlp.global<?x32x64xf16> -> !matrices
    lowlp.print_tile "a", %a : !matrices
  } {lowlp.stages = #lowlp.stages<3, producer = true>, lowlp.multicast = #lowlp.multicast<2>}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %xs[%i, %c0, %c0] : !lowlp.global<?x32x64xf16> -> !matrices
    lowlp.print_tile "a", %a : !matrices
  } {lowlp.stages = #lowlp.stages<3>, lowlp.multicast = #lowlp.multicast<2>}
  lowlp.return
}
