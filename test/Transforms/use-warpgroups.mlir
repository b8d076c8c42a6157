// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups))" | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups{arch=sm_80}))" | FileCheck %s --check-prefix=WARPS
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups))" --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!words = !lowlp.shared<4x64x1xf16>
!row = !lowlp.tile<64x1xf16, spatial(4, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// Two products of a stage, each with accumulators of its own. The operand of the second is loaded before the first product, from a
// place that the program computes after it, and made while that multiplies; the accumulators of the first are used after the wait
// for it. The stage is given back when both are done; both have used up what was loaded of it.
// CHECK-LABEL: lowlp.kernel @accumulators
// CHECK-SAME: lowlp.report = {warpgroups = ["2 of 2 products by warpgroups, at most 2 in flight"]
// CHECK: scf.for
// CHECK: lowlp.mbarrier_wait
// CHECK: %[[A0:.*]] = lowlp.neg
// CHECK: %[[SECOND:.*]] = lowlp.load_shared %{{.*}} : !lowlp.shared<4x64x1xf16>
// CHECK: %[[S0:.*]] = lowlp.wgmma %[[A0]], %[[RING:.*]][%[[PLACE:.*]], %c0, %c0] :
// CHECK: lowlp.wgmma_commit
// CHECK: lowlp.broadcast %[[SECOND]]
// CHECK: %[[A1:.*]] = lowlp.add
// CHECK: %[[S1:.*]] = lowlp.wgmma %[[A1]], %[[RING]][%[[PLACE]], %c0, %c0] :
// CHECK: lowlp.wgmma_commit
// CHECK: %[[T0:.*]] = lowlp.wgmma_wait 1 takes %[[S0]]
// CHECK: %[[ACC:.*]] = lowlp.add %[[T0]], %{{.*}}
// CHECK: %[[T1:.*]] = lowlp.wgmma_wait 0 takes %[[S1]]
// CHECK: lowlp.add %[[T1]], %[[ACC]]
// CHECK: lowlp.mbarrier_arrive %{{.*}} loads_ended
// CHECK: scf.yield
// CHECK-NOT: lowlp.dot
// WARPS-LABEL: lowlp.kernel @accumulators
// WARPS-COUNT-2: lowlp.dot
lowlp.kernel @accumulators() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %words = lowlp.alloc_shared : !words
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<4>
  %s = scf.for %place = %c0 to %c4 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    lowlp.mbarrier_wait %full[%place] parity %c0 : !lowlp.mbarriers<4>
    %w0 = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
    %b0 = lowlp.broadcast %w0 : !row -> !a
    %a0 = lowlp.neg %b0 : !a
    %x0 = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t0 = lowlp.transpose %x0 [1, 0] : !x -> !xt
    %d0 = lowlp.dot %a0, %t0, %zeros : !a, !xt, !sum
    %acc0 = lowlp.add %d0, %acc : !sum
    %other = arith.subi %c4, %c1 : index
    %back = arith.subi %other, %place : index
    %w1 = lowlp.load_shared %words[%back, %c0, %c0] in_bounds : !words -> !row
    %b1 = lowlp.broadcast %w1 : !row -> !a
    %a1 = lowlp.add %b1, %b1 : !a
    %x1 = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t1 = lowlp.transpose %x1 [1, 0] : !x -> !xt
    lowlp.mbarrier_arrive %empty[%place] : !lowlp.mbarriers<4>
    %d1 = lowlp.dot %a1, %t1, %zeros : !a, !xt, !sum
    %acc1 = lowlp.add %d1, %acc0 : !sum
    scf.yield %acc1 : !sum
  }
  lowlp.return
}

// -----

// Scales that are loaded from the stage are used after the product, so that their loads may be in flight when it is given back.
!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!words = !lowlp.shared<4x64x1xf16>
!factors = !lowlp.shared<4x64x1xf32>
!row = !lowlp.tile<64x1xf16, spatial(4, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!factor = !lowlp.tile<64x1xf32, spatial(4, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @scales
// CHECK: lowlp.wgmma_wait 0
// CHECK: lowlp.mbarrier_arrive %{{.*}}[%{{.*}}] : !lowlp.mbarriers<4>
// WARPS-LABEL: lowlp.kernel @scales
lowlp.kernel @scales() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %words = lowlp.alloc_shared : !words
  %factors = lowlp.alloc_shared : !factors
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<4>
  %s = scf.for %place = %c0 to %c4 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    lowlp.mbarrier_wait %full[%place] parity %c0 : !lowlp.mbarriers<4>
    %w = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
    %f = lowlp.load_shared %factors[%place, %c0, %c0] in_bounds : !factors -> !factor
    %a = lowlp.broadcast %w : !row -> !a
    %x = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t = lowlp.transpose %x [1, 0] : !x -> !xt
    %d = lowlp.dot %a, %t, %zeros : !a, !xt, !sum
    lowlp.mbarrier_arrive %empty[%place] : !lowlp.mbarriers<4>
    %wide = lowlp.broadcast %f : !factor -> !sum
    %scaled = lowlp.mul %d, %wide : !sum
    %next = lowlp.add %scaled, %acc : !sum
    scf.yield %next : !sum
  }
  lowlp.return
}

// -----

// A load within a branch, and what one iteration loads for the next: neither is used up when the stage is given back.
!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!words = !lowlp.shared<4x64x1xf16>
!factors = !lowlp.shared<4x64x1xf32>
!row = !lowlp.tile<64x1xf16, spatial(4, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!factor = !lowlp.tile<64x1xf32, spatial(4, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @branch
// CHECK: lowlp.mbarrier_arrive %{{.*}}[%{{.*}}] : !lowlp.mbarriers<4>
// CHECK-LABEL: lowlp.kernel @ahead
// CHECK: lowlp.mbarrier_arrive %{{.*}}[%{{.*}}] : !lowlp.mbarriers<4>
// WARPS-LABEL: lowlp.kernel @branch
lowlp.kernel @branch(%m: i32) attributes {grid = affine_map<(m) -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %half = arith.constant 0.0 : f16
  %none = lowlp.splat %half : f16 -> !row
  %n = arith.index_cast %m : i32 to index
  %ring = lowlp.alloc_shared : !ring
  %words = lowlp.alloc_shared : !words
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<4>
  %s = scf.for %place = %c0 to %c4 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    lowlp.mbarrier_wait %full[%place] parity %c0 : !lowlp.mbarriers<4>
    %some = arith.cmpi slt, %place, %n : index
    %w = scf.if %some -> (!row) {
      %loaded = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
      scf.yield %loaded : !row
    } else {
      scf.yield %none : !row
    }
    %a = lowlp.broadcast %w : !row -> !a
    %x = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t = lowlp.transpose %x [1, 0] : !x -> !xt
    %d = lowlp.dot %a, %t, %acc : !a, !xt, !sum
    lowlp.mbarrier_arrive %empty[%place] : !lowlp.mbarriers<4>
    scf.yield %d : !sum
  }
  lowlp.return
}
lowlp.kernel @ahead() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %half = arith.constant 0.0 : f16
  %none = lowlp.splat %half : f16 -> !row
  %ring = lowlp.alloc_shared : !ring
  %words = lowlp.alloc_shared : !words
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<4>
  %s, %w = scf.for %place = %c0 to %c4 step %c1 iter_args(%acc = %zeros, %before = %none) -> (!sum, !row) {
    lowlp.mbarrier_wait %full[%place] parity %c0 : !lowlp.mbarriers<4>
    %next = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
    %a = lowlp.broadcast %before : !row -> !a
    %x = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t = lowlp.transpose %x [1, 0] : !x -> !xt
    %d = lowlp.dot %a, %t, %acc : !a, !xt, !sum
    lowlp.mbarrier_arrive %empty[%place] : !lowlp.mbarriers<4>
    scf.yield %d, %next : !sum, !row
  }
  lowlp.return
}

// -----

!out = !lowlp.shared<64x16xf32>
!ring = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// A chain of three products has one set of accumulators; only two at once. What threads store is fenced, and an op with a
// region waits for what it uses.
// CHECK-LABEL: lowlp.kernel @chain
// CHECK: lowlp.store_shared
// CHECK-NEXT: lowlp.fence_async
// CHECK-NEXT: lowlp.synchronize
// CHECK: %[[S0:.*]] = lowlp.wgmma %{{.*}} plus %{{.*}} : !lowlp.tile
// CHECK-NEXT: lowlp.wgmma_commit
// CHECK-NEXT: %[[S1:.*]] = lowlp.wgmma %{{.*}} plus %[[S0]] : !lowlp.accumulators
// CHECK-NEXT: lowlp.wgmma_commit
// CHECK-NEXT: lowlp.wgmma_wait 1{{$}}
// CHECK-NEXT: %[[S2:.*]] = lowlp.wgmma %{{.*}} plus %[[S1]] : !lowlp.accumulators
// CHECK-NEXT: lowlp.wgmma_commit
// CHECK-NEXT: lowlp.wgmma_wait 1{{$}}
// CHECK-NEXT: %[[T:.*]] = lowlp.wgmma_wait 0 takes %[[S2]]
// CHECK-NEXT: scf.if %{{.*}} {
// CHECK-NEXT: lowlp.store_shared %[[T]]
lowlp.kernel @chain() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f16
  %ones = lowlp.splat %one : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %xs = lowlp.splat %half : f16 -> !x
  %true = arith.constant true
  %ring = lowlp.alloc_shared : !ring
  %out = lowlp.alloc_shared : !out
  lowlp.store_shared %xs, %ring[%c0, %c0] in_bounds : !x, !ring
  lowlp.synchronize
  %x = lowlp.load_shared %ring[%c0, %c0] in_bounds : !ring -> !x
  %t = lowlp.transpose %x [1, 0] : !x -> !xt
  %d0 = lowlp.dot %a, %t, %ones : !a, !xt, !sum
  %d1 = lowlp.dot %a, %t, %d0 : !a, !xt, !sum
  %d2 = lowlp.dot %a, %t, %d1 : !a, !xt, !sum
  scf.if %true {
    lowlp.store_shared %d2, %out[%c0, %c0] in_bounds : !sum, !out
  }
  lowlp.return
}

// -----

!out = !lowlp.shared<64x16xf32>
!table = !lowlp.shared<256x32x2xf16>
!ring = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!codes = !lowlp.tile<64x64xui4, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// The second operand is looked up while the first product is made; a store waits.
// CHECK-LABEL: lowlp.kernel @lookups
// CHECK: lowlp.lookup_pairs
// CHECK: lowlp.wgmma
// CHECK-NEXT: lowlp.wgmma_commit
// CHECK-NEXT: %[[A1:.*]] = lowlp.lookup_pairs
// CHECK-NEXT: %[[S1:.*]] = lowlp.wgmma %[[A1]]
// CHECK-NEXT: lowlp.wgmma_commit
// CHECK-NEXT: lowlp.wgmma_wait 1{{$}}
// CHECK-NEXT: lowlp.wgmma_wait 0 takes %[[S1]]
// CHECK-NEXT: lowlp.store_shared
lowlp.kernel @lookups(%w: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  %ones = lowlp.splat %one : f32 -> !sum
  %table = lowlp.alloc_shared : !table
  %ring = lowlp.alloc_shared : !ring
  %out = lowlp.alloc_shared : !out
  %words = lowlp.view_global %w shape [64, 128] : !lowlp.ptr<ui4> -> !lowlp.global<64x128xui4>
  %k0 = lowlp.load_global %words[%c0, %c0] in_bounds : !lowlp.global<64x128xui4> -> !codes
  %k1 = lowlp.load_global %words[%c0, %c64] in_bounds : !lowlp.global<64x128xui4> -> !codes
  %x = lowlp.load_shared %ring[%c0, %c0] in_bounds : !ring -> !x
  %t = lowlp.transpose %x [1, 0] : !x -> !xt
  %a0 = lowlp.lookup_pairs %table, %k0 : !table, !codes -> !a
  %d0 = lowlp.dot %a0, %t, %ones : !a, !xt, !sum
  %a1 = lowlp.lookup_pairs %table, %k1 : !table, !codes -> !a
  %d1 = lowlp.dot %a1, %t, %d0 : !a, !xt, !sum
  lowlp.store_shared %d1, %out[%c0, %c0] in_bounds : !sum, !out
  lowlp.return
}

// -----

!plain = !lowlp.shared<16x64xf16>
!out = !lowlp.shared<64x16xf32>
!ring = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// Rows that no descriptor describes, x that is no shared tile, and stores with no barrier after them: by warps.
// REMARK: [Missed] warpgroups | Category:lowlp-use-warpgroups | Function=others | Op=lowlp.dot, Reason="the shared layout of operand b is none that a matrix descriptor describes"
// REMARK: Op=lowlp.dot, Reason="operand b is not loaded from shared memory in the block of the product"
// REMARK: Op=lowlp.dot, Reason="threads store operand b, and no barrier of the product's block stands between"
// CHECK-LABEL: lowlp.kernel @others
// CHECK-SAME: lowlp.report = {warpgroups = ["0 of 3 products by warpgroups
// CHECK-COUNT-3: lowlp.dot
// CHECK-NOT: lowlp.wgmma
// CHECK: lowlp.return
lowlp.kernel @others() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f16
  %ones = lowlp.splat %one : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %xs = lowlp.splat %half : f16 -> !x
  %plain = lowlp.alloc_shared : !plain
  %ring = lowlp.alloc_shared : !ring
  %out = lowlp.alloc_shared : !out
  lowlp.store_shared %xs, %ring[%c0, %c0] in_bounds : !x, !ring
  %x = lowlp.load_shared %plain[%c0, %c0] in_bounds : !plain -> !x
  %t = lowlp.transpose %x [1, 0] : !x -> !xt
  %d0 = lowlp.dot %a, %t, %ones : !a, !xt, !sum
  %ts = lowlp.transpose %xs [1, 0] : !x -> !xt
  %d1 = lowlp.dot %a, %ts, %d0 : !a, !xt, !sum
  %y = lowlp.load_shared %ring[%c0, %c0] in_bounds : !ring -> !x
  %u = lowlp.transpose %y [1, 0] : !x -> !xt
  %d2 = lowlp.dot %a, %u, %d1 : !a, !xt, !sum
  lowlp.store_shared %d2, %out[%c0, %c0] in_bounds : !sum, !out
  lowlp.return
}

// -----

!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!words = !lowlp.shared<4x128x1xf16>
!row = !lowlp.tile<128x1xf16, spatial(8, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!a = !lowlp.tile<128x64xf16, spatial(8, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 8), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 8), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<128x16xf32, spatial(8, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// Two warpgroups begin the products of an iteration in turn.
// CHECK-LABEL: lowlp.kernel @ping_pong
// CHECK: lowlp.give_turn first
// CHECK-NEXT: scf.for
// CHECK: lowlp.take_turn
// CHECK-NEXT: lowlp.wgmma
// CHECK-NOT: _turn
// CHECK: lowlp.wgmma %
// CHECK-NEXT: lowlp.wgmma_commit
// CHECK-NEXT: lowlp.give_turn
// CHECK-NOT: _turn
// WARPS-LABEL: lowlp.kernel @ping_pong
// WARPS-NOT: _turn
lowlp.kernel @ping_pong() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup, ping_pong = true>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %words = lowlp.alloc_shared : !words
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<4>
  %empty = lowlp.alloc_mbarriers arrivals 8 by_warps : !lowlp.mbarriers<4>
  %s = scf.for %place = %c0 to %c4 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    lowlp.mbarrier_wait %full[%place] parity %c0 : !lowlp.mbarriers<4>
    %w0 = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
    %b0 = lowlp.broadcast %w0 : !row -> !a
    %a0 = lowlp.neg %b0 : !a
    %x0 = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t0 = lowlp.transpose %x0 [1, 0] : !x -> !xt
    %d0 = lowlp.dot %a0, %t0, %zeros : !a, !xt, !sum
    %acc0 = lowlp.add %d0, %acc : !sum
    %w1 = lowlp.load_shared %words[%place, %c0, %c0] in_bounds : !words -> !row
    %b1 = lowlp.broadcast %w1 : !row -> !a
    %a1 = lowlp.add %b1, %b1 : !a
    %x1 = lowlp.load_shared %ring[%place, %c0, %c0] in_bounds : !ring -> !x
    %t1 = lowlp.transpose %x1 [1, 0] : !x -> !xt
    lowlp.mbarrier_arrive %empty[%place] : !lowlp.mbarriers<4>
    %d1 = lowlp.dot %a1, %t1, %zeros : !a, !xt, !sum
    %acc1 = lowlp.add %d1, %acc0 : !sum
    scf.yield %acc1 : !sum
  }
  lowlp.return
}

// -----

!ring = !lowlp.shared<4x16x64xf16, local(4, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
!short = !lowlp.shared<4x128x1xf16>
!long = !lowlp.shared<4x128x64xf16>
!row = !lowlp.tile<128x1xf16, spatial(8, 1).local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!a = !lowlp.tile<128x64xf16, spatial(8, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 8), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 8), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<128x16xf32, spatial(8, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// A load of few bits goes before two products, a longer one before one.
// CHECK-LABEL: lowlp.kernel @ahead
// CHECK: lowlp.load_shared %{{.*}}[%c0, %c0, %c0] in_bounds : !lowlp.shared<4x128x1xf16>
// CHECK: lowlp.load_shared %{{.*}}[%c1, %c0, %c0] in_bounds : !lowlp.shared<4x128x1xf16>
// CHECK: lowlp.load_shared %{{.*}}[%c2, %c0, %c0] in_bounds : !lowlp.shared<4x128x1xf16>
// CHECK-NOT: !lowlp.shared<4x128x64xf16>
// CHECK: lowlp.wgmma %
// CHECK: lowlp.load_shared %{{.*}}[%c2, %c0, %c0] in_bounds : !lowlp.shared<4x128x64xf16>
// CHECK: lowlp.wgmma %
// CHECK-NOT: lowlp.load_shared
// CHECK: lowlp.wgmma %
// WARPS-LABEL: lowlp.kernel @ahead
lowlp.kernel @ahead() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %short = lowlp.alloc_shared : !short
  %long = lowlp.alloc_shared : !long
  %x0 = lowlp.load_shared %ring[%c0, %c0, %c0] in_bounds : !ring -> !x
  %t0 = lowlp.transpose %x0 [1, 0] : !x -> !xt
  %x1 = lowlp.load_shared %ring[%c1, %c0, %c0] in_bounds : !ring -> !x
  %t1 = lowlp.transpose %x1 [1, 0] : !x -> !xt
  %x2 = lowlp.load_shared %ring[%c2, %c0, %c0] in_bounds : !ring -> !x
  %t2 = lowlp.transpose %x2 [1, 0] : !x -> !xt
  %w0 = lowlp.load_shared %short[%c0, %c0, %c0] in_bounds : !short -> !row
  %a0 = lowlp.broadcast %w0 : !row -> !a
  %d0 = lowlp.dot %a0, %t0, %zeros : !a, !xt, !sum
  %w1 = lowlp.load_shared %short[%c1, %c0, %c0] in_bounds : !short -> !row
  %a1 = lowlp.broadcast %w1 : !row -> !a
  %d1 = lowlp.dot %a1, %t1, %d0 : !a, !xt, !sum
  %w2 = lowlp.load_shared %short[%c2, %c0, %c0] in_bounds : !short -> !row
  %b2 = lowlp.broadcast %w2 : !row -> !a
  %l2 = lowlp.load_shared %long[%c2, %c0, %c0] in_bounds : !long -> !a
  %a2 = lowlp.mul %b2, %l2 : !a
  %d2 = lowlp.dot %a2, %t2, %d1 : !a, !xt, !sum
  %view = lowlp.view %d2 : !sum -> !sum
  lowlp.return
}

// Where products of two tiles of rows follow each other, before one only, also where each is a group of its own.
// CHECK-LABEL: lowlp.kernel @rows_in_turn
// CHECK: lowlp.load_shared %{{.*}}[%c0, %c0, %c0] in_bounds : !lowlp.shared<4x128x1xf16>
// CHECK: lowlp.load_shared %{{.*}}[%c1, %c0, %c0] in_bounds : !lowlp.shared<4x128x1xf16>
// CHECK-NOT: !lowlp.shared<4x128x1xf16>
// CHECK: lowlp.wgmma %
// CHECK: lowlp.load_shared %{{.*}}[%c2, %c0, %c0] in_bounds : !lowlp.shared<4x128x1xf16>
// CHECK: lowlp.wgmma %
// CHECK: lowlp.wgmma %
// WARPS-LABEL: lowlp.kernel @rows_in_turn
lowlp.kernel @rows_in_turn() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %ring = lowlp.alloc_shared : !ring
  %short = lowlp.alloc_shared : !short
  %x0 = lowlp.load_shared %ring[%c0, %c0, %c0] in_bounds : !ring -> !x
  %t0 = lowlp.transpose %x0 [1, 0] : !x -> !xt
  %x1 = lowlp.load_shared %ring[%c1, %c0, %c0] in_bounds : !ring -> !x
  %t1 = lowlp.transpose %x1 [1, 0] : !x -> !xt
  %w0 = lowlp.load_shared %short[%c0, %c0, %c0] in_bounds : !short -> !row
  %a0 = lowlp.broadcast %w0 : !row -> !a
  %d0 = lowlp.dot %a0, %t0, %zeros : !a, !xt, !sum
  %w1 = lowlp.load_shared %short[%c1, %c0, %c0] in_bounds : !short -> !row
  %a1 = lowlp.broadcast %w1 : !row -> !a
  %d1 = lowlp.dot %a1, %t0, %zeros : !a, !xt, !sum
  %w2 = lowlp.load_shared %short[%c2, %c0, %c0] in_bounds : !short -> !row
  %a2 = lowlp.broadcast %w2 : !row -> !a
  %d2 = lowlp.dot %a2, %t1, %zeros : !a, !xt, !sum
  %sum = lowlp.add %d0, %d1 : !sum
  %all = lowlp.add %sum, %d2 : !sum
  %view = lowlp.view %all : !sum -> !sum
  lowlp.return
}

// -----

// Bits in words of 32, seen as bits on the way to operand b.
!ring = !lowlp.shared<2x16x16xui32, local(2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 4)>
!words = !lowlp.tile<4x2x32x4xui32, spatial(4, 1, 1, 1).local(1, 2, 1, 1).spatial(1, 1, 32, 1).local(1, 1, 1, 4)>
!a = !lowlp.tile<64x512xui1, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 32)>
!x = !lowlp.tile<16x16xui32, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 2).local(1, 2).spatial(8, 4)>
!xb = !lowlp.tile<16x512xui1, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 2).local(1, 2).spatial(8, 4).local(1, 32)>
!xt = !lowlp.tile<512x16xui1, reduce(spatial(1, 1, 4), dims=[2]).local(2, 2).local(2, 1).column_spatial(4, 8).local(32, 1)>
!sum = !lowlp.tile<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @bits
// CHECK-SAME: lowlp.report = {warpgroups = ["1 of 1 products by warpgroups, at most 2 in flight"]
// CHECK: lowlp.wgmma %{{.*}}, %{{.*}}[%c0, %c0, %c0] : !lowlp.tile<64x512xui1, {{.*}}>, !lowlp.shared<2x16x16xui32, {{.*}}> -> !lowlp.accumulators<64x16xsi32,
// CHECK-NOT: lowlp.dot
lowlp.kernel @bits(%p: !lowlp.ptr<ui32>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %v = lowlp.view_global %p shape [4, 2, 32, 4] : !lowlp.ptr<ui32> -> !lowlp.global<4x2x32x4xui32>
  %w = lowlp.load_global %v[%c0, %c0, %c0, %c0] : !lowlp.global<4x2x32x4xui32> -> !words
  %a = lowlp.view %w : !words -> !a
  %ring = lowlp.alloc_shared : !ring
  %x = lowlp.load_shared %ring[%c0, %c0, %c0] in_bounds : !ring -> !x
  %xb = lowlp.view %x : !x -> !xb
  %xt = lowlp.transpose %xb [1, 0] : !xb -> !xt
  %zeros = lowlp.splat %zero : i32 -> !sum
  %d = lowlp.dot %a, %xt, %zeros : !a, !xt, !sum
  lowlp.print_tile "d", %d : !sum
  lowlp.return
}

// -----

// Another order of bits than that of the words is not what the instruction reads.
!ring = !lowlp.shared<2x16x16xui32, local(2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 4)>
!words = !lowlp.tile<4x2x32x4xui32, spatial(4, 1, 1, 1).local(1, 2, 1, 1).spatial(1, 1, 32, 1).local(1, 1, 1, 4)>
!a = !lowlp.tile<64x512xui1, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 32)>
!x = !lowlp.tile<16x16xui32, reduce(spatial(1, 1, 4), dims=[2]).local(2, 1).local(1, 4).spatial(8, 4)>
!xb = !lowlp.tile<16x512xui1, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 2).local(1, 2).spatial(8, 4).local(1, 32)>
!xt = !lowlp.tile<512x16xui1, reduce(spatial(1, 1, 4), dims=[2]).local(2, 2).local(2, 1).column_spatial(4, 8).local(32, 1)>
!sum = !lowlp.tile<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @other_bits
// CHECK: lowlp.dot
// REMARK: Function=other_bits | Op=lowlp.dot, Reason="operand b is not loaded from shared memory in the block of the product"
lowlp.kernel @other_bits(%p: !lowlp.ptr<ui32>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %v = lowlp.view_global %p shape [4, 2, 32, 4] : !lowlp.ptr<ui32> -> !lowlp.global<4x2x32x4xui32>
  %w = lowlp.load_global %v[%c0, %c0, %c0, %c0] : !lowlp.global<4x2x32x4xui32> -> !words
  %a = lowlp.view %w : !words -> !a
  %ring = lowlp.alloc_shared : !ring
  %x = lowlp.load_shared %ring[%c0, %c0, %c0] in_bounds : !ring -> !x
  %xb = lowlp.view %x : !x -> !xb
  %xt = lowlp.transpose %xb [1, 0] : !xb -> !xt
  %zeros = lowlp.splat %zero : i32 -> !sum
  %d = lowlp.dot %a, %xt, %zeros : !a, !xt, !sum
  lowlp.print_tile "d", %d : !sum
  lowlp.return
}

// -----

// Two slices of K, each a warpgroup's: operand b is a tile [slices, N, K of a slice], turned and seen as [K, N].
!ring = !lowlp.shared<3x2x16x32xf16, local(3, 2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(1, 2).spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<2x16x32xf16, spatial(2, 1, 1).reduce(spatial(1, 1, 1, 4), dims=[3]).column_local(1, 2, 2).local(1, 1, 2).spatial(1, 8, 4).local(1, 1, 2)>
!xs = !lowlp.tile<2x32x16xf16, spatial(2, 1, 1).reduce(spatial(1, 1, 1, 4), dims=[3]).local(1, 2, 2).local(1, 2, 1).column_spatial(1, 4, 8).local(1, 2, 1)>
!xt = !lowlp.tile<64x16xf16, spatial(2, 1).reduce(spatial(1, 1, 4), dims=[2]).local(2, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<128x16xf32, spatial(8, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @slices
// CHECK-SAME: lowlp.report = {warpgroups = ["1 of 1 products by warpgroups, at most 2 in flight"]
// CHECK: lowlp.wgmma %{{.*}}, %{{.*}}[%{{.*}}, %c0, %c0, %c0] : !lowlp.tile<64x64xf16, {{.*}}>, !lowlp.shared<3x2x16x32xf16, {{.*}}> -> !lowlp.accumulators<128x16xf32,
// CHECK-NOT: lowlp.dot
// CHECK-NOT: lowlp.load_shared
lowlp.kernel @slices(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 256 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %stage = arith.index_cast %n : i32 to index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %ring = lowlp.alloc_shared : !ring
  %t = lowlp.load_shared %ring[%stage, %c0, %c0, %c0] in_bounds : !ring -> !x
  %turned = lowlp.transpose %t [0, 2, 1] : !x -> !xs
  %b = lowlp.view %turned : !xs -> !xt
  %zeros = lowlp.splat %zero : f32 -> !sum
  %d = lowlp.dot %a, %b, %zeros : !a, !xt, !sum
  lowlp.print_tile "d", %d : !sum
  lowlp.return
}
