// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups))" | FileCheck %s

!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!words = !lowlp.shared<4x64x1xf16>
!row = !lowlp.tile<64x1xf16, spatial(4, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// The first operand is made before the loop, where there is an iteration, and then beside the last product, of the next
// place or, in the last iteration, of its own.
// CHECK-LABEL: lowlp.kernel @ahead
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK-NEXT: lowlp.mbarrier_wait %[[FULL:.*]][%c0] parity %c0
// CHECK: lowlp.load_shared %{{.*}}[%c0, %c0, %c0]
// CHECK: scf.yield
// CHECK: lowlp.splat
// CHECK: scf.for {{.*}} iter_args(%[[PLACE:[^ ]*]] = %c0, %[[PARITY:[^ ]*]] = %c0, %{{[^ ]*}} = %{{[^ ]*}}, %[[A:[^ ]*]] = %[[FIRST]])
// CHECK-NOT: lowlp.mbarrier_wait
// CHECK: lowlp.wgmma %[[A]], %{{.*}}[%[[PLACE]],
// CHECK: %[[FOLLOWS:.*]] = arith.cmpi slt
// CHECK: %[[TO:.*]] = arith.select %[[FOLLOWS]], %{{.*}}, %[[PLACE]]
// CHECK: %[[THEN:.*]] = arith.select %[[FOLLOWS]], %{{.*}}, %[[PARITY]]
// CHECK: lowlp.mbarrier_wait %[[FULL]][%[[TO]]] parity %[[THEN]]
// CHECK: %[[W:.*]] = lowlp.load_shared %{{.*}}[%[[TO]],
// CHECK: lowlp.wgmma
// CHECK: lowlp.wgmma_wait 1
// CHECK: %[[B:.*]] = lowlp.broadcast %[[W]]
// CHECK: %[[N:.*]] = lowlp.neg %[[B]]
// CHECK: %[[H:.*]] = lowlp.hold %[[N]]
// CHECK: lowlp.wgmma_wait 0
// CHECK: lowlp.mbarrier_arrive %{{.*}}[%[[PLACE]]]
// CHECK: scf.yield {{.*}}, %[[H]] :
lowlp.kernel @ahead() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, lowlp.matrix_unit = "warpgroup", lowlp.operands_ahead = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %words = lowlp.alloc_shared : !words
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<4>
  %s:3 = scf.for %i = %c0 to %c9 step %c1 iter_args(%place = %c0, %parity = %c0, %acc = %zeros) -> (index, index, !sum) {
    lowlp.mbarrier_wait %full[%place] parity %parity : !lowlp.mbarriers<4>
    %w0 = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
    %b0 = lowlp.broadcast %w0 : !row -> !a
    %a0 = lowlp.neg %b0 : !a
    %x0 = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t0 = lowlp.transpose %x0 [1, 0] : !x -> !xt
    %d0 = lowlp.dot %a0, %t0, %acc : !a, !xt, !sum
    %a1 = lowlp.add %b0, %b0 : !a
    %d1 = lowlp.dot %a1, %t0, %d0 : !a, !xt, !sum
    lowlp.mbarrier_arrive %empty[%place] : !lowlp.mbarriers<4>
    %sum = arith.addi %place, %c1 : index
    %wraps = arith.cmpi eq, %sum, %c4 : index
    %next = arith.select %wraps, %c0, %sum : index
    %other = arith.xori %parity, %c1 : index
    %turn = arith.select %wraps, %other, %parity : index
    scf.yield %next, %turn, %d1 : index, index, !sum
  }
  lowlp.return
}

// -----

!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// An operand that no stage holds has nothing to wait for.
// CHECK-LABEL: lowlp.kernel @constant
// CHECK: scf.for
// CHECK: lowlp.mbarrier_wait
// CHECK: lowlp.wgmma
// CHECK-NOT: lowlp.hold
// CHECK: lowlp.return
lowlp.kernel @constant() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, lowlp.matrix_unit = "warpgroup", lowlp.operands_ahead = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %a = lowlp.splat %half : f16 -> !a
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %s:3 = scf.for %i = %c0 to %c9 step %c1 iter_args(%place = %c0, %parity = %c0, %acc = %zeros) -> (index, index, !sum) {
    lowlp.mbarrier_wait %full[%place] parity %parity : !lowlp.mbarriers<4>
    %x = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t = lowlp.transpose %x [1, 0] : !x -> !xt
    %d = lowlp.dot %a, %t, %acc : !a, !xt, !sum
    scf.yield %place, %parity, %d : index, index, !sum
  }
  lowlp.return
}
