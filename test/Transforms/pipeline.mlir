// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings,lowlp-pipeline),canonicalize,cse)" | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings{arch=sm_80},lowlp-pipeline{arch=sm_80}),canonicalize,cse)" | FileCheck %s --check-prefix=ASYNC

!matrices = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!words = !lowlp.tile<192xui32, local(3).spatial(64)>

// The first thread fills two of three places, and in each iteration the one that the iteration before has read. Matrices
// lie with the swizzle of rows of 128 bytes.
// CHECK-LABEL: lowlp.kernel @both
// CHECK-SAME: lowlp.report = {pipelines = ["3 stages of 4864 bytes by tensor copies"]
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[FULL:.*]] = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
// CHECK-DAG: %[[EMPTY:.*]] = lowlp.alloc_mbarriers arrivals 2 by_warps : !lowlp.mbarriers<3>
// CHECK-DAG: %[[W:.*]] = lowlp.alloc_shared : !lowlp.shared<3x192xui32>
// CHECK-DAG: %[[X:.*]] = lowlp.alloc_shared : !lowlp.shared<3x32x64xf16, local(3, 1, 1).swizzle(local(32, 8), dim=1).local(1, 1, 8)>
// CHECK: lowlp.synchronize
// CHECK: lowlp.first_thread {
// CHECK-NEXT: scf.for %[[PLACE:.*]] = %[[C0]] to %[[C2]] step
// CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[PLACE]], %[[N:.*]] : index
// CHECK-NEXT: scf.if %[[EXISTS]] {
// CHECK-NEXT: lowlp.mbarrier_expect_bytes %[[FULL]][%[[PLACE]]] bytes 4864
// CHECK-NEXT: lowlp.copy_tensor %{{.*}}[%[[PLACE]], %[[C0]], %[[C0]]] to %[[X]][%[[PLACE]], %[[C0]], %[[C0]]] shape [32, 64] signals %[[FULL]][%[[PLACE]]]
// CHECK-NEXT: lowlp.copy_tensor %{{.*}}[%[[PLACE]], %[[C0]]] to %[[W]][%[[PLACE]], %[[C0]]] shape [192] signals %[[FULL]][%[[PLACE]]]
// CHECK: scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %{{.*}} iter_args(%[[PLACE:.*]] = %[[C0]], %[[PARITY:.*]] = %[[C0]])
// CHECK-NEXT: lowlp.first_thread {
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %[[C2]]
// CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK-NEXT: scf.if %[[EXISTS]] {
// CHECK: %[[FREE:.*]] = arith.select %{{.*}}, %[[C2]], %{{.*}} : index
// CHECK-NEXT: %[[ROUND:.*]] = arith.select %{{.*}}, %{{.*}}, %[[PARITY]] : index
// CHECK-NEXT: lowlp.mbarrier_wait %[[EMPTY]][%[[FREE]]] parity %[[ROUND]]
// CHECK-NEXT: lowlp.mbarrier_expect_bytes %[[FULL]][%[[FREE]]] bytes 4864
// CHECK-NEXT: lowlp.copy_tensor %{{.*}}[%[[NEXT]], %[[C0]], %[[C0]]] to %[[X]][%[[FREE]], %[[C0]], %[[C0]]]
// CHECK-NEXT: lowlp.copy_tensor %{{.*}}[%[[NEXT]], %[[C0]]] to %[[W]][%[[FREE]], %[[C0]]]
// CHECK: lowlp.mbarrier_wait %[[FULL]][%[[PLACE]]] parity %[[PARITY]]
// CHECK-NEXT: lowlp.load_shared %[[X]][%[[PLACE]], %[[C0]], %[[C0]]] in_bounds
// CHECK-NEXT: lowlp.load_shared %[[W]][%[[PLACE]], %[[C0]]] in_bounds
// CHECK: lowlp.mbarrier_arrive %[[EMPTY]][%[[PLACE]]]
// CHECK-NEXT: scf.yield
// CHECK-NOT: lowlp.stages

// By asynchronous copies each iteration waits for all groups but one, and commits one, which may be empty.
// ASYNC-LABEL: lowlp.kernel @both
// ASYNC-SAME: lowlp.report = {pipelines = ["3 stages of 4864 bytes by asynchronous copies"]
// ASYNC-NOT: mbarrier
// ASYNC: scf.for %[[PLACE:.*]] = %{{.*}} to %c2
// ASYNC: scf.if
// ASYNC-NEXT: lowlp.copy_async %{{.*}}[%[[PLACE]], %{{.*}}, %{{.*}}] to %[[X:.*]][%[[PLACE]], %{{.*}}, %{{.*}}] shape [32, 64]
// ASYNC-NEXT: lowlp.copy_async %{{.*}}[%[[PLACE]], %{{.*}}] to %[[W:.*]][%[[PLACE]], %{{.*}}] shape [192]
// ASYNC-NEXT: }
// ASYNC-NEXT: lowlp.copy_async_commit
// ASYNC: scf.for %[[I:.*]] = %{{.*}} iter_args(%[[PLACE:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
// ASYNC-NEXT: lowlp.copy_async_wait 1
// ASYNC-NEXT: lowlp.synchronize
// ASYNC: scf.if
// ASYNC: lowlp.copy_async
// ASYNC: lowlp.copy_async
// ASYNC-NEXT: }
// ASYNC-NEXT: lowlp.copy_async_commit
// ASYNC-NEXT: lowlp.load_shared %[[X]][%[[PLACE]],
// ASYNC-NEXT: lowlp.load_shared %[[W]][%[[PLACE]],
// ASYNC: }
// ASYNC-NEXT: lowlp.copy_async_wait 0
// ASYNC-NEXT: lowlp.return
lowlp.kernel @both(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<ui32> {lowlp.align = 16 : i64},
    %y: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 32, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x32x64xf16>
  %wv = lowlp.view_global %w shape [%count, 192] : !lowlp.ptr<ui32> -> !lowlp.global<?x192xui32>
  %yv = lowlp.view_global %y shape [%count, 32, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x32x64xf16>
  scf.for %i = %c0 to %count step %c1 {
    %a = lowlp.load_global %xv[%i, %c0, %c0] : !lowlp.global<?x32x64xf16> -> !matrices
    %b = lowlp.load_global %wv[%i, %c0] : !lowlp.global<?x192xui32> -> !words
    lowlp.print_tile "b", %b : !words
    lowlp.store_global %a, %yv[%i, %c0, %c0] : !matrices, !lowlp.global<?x32x64xf16>
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}

// -----

!words = !lowlp.tile<128xui32, spatial(32).local(4)>
!row = !lowlp.tile<96xf16, local(3).spatial(32)>

// A warp of its own computes what the copies need: offsets that follow from the induction variable, also from below. What
// no launch before writes is copied before the wait for it, to all places. Rings of 192 bytes leave room to the next
// multiple of 128.
// CHECK-LABEL: lowlp.kernel @producer
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 704 bytes by tensor copies of a producer warp"]
// CHECK-DAG: %[[X:.*]] = lowlp.alloc_shared : !lowlp.shared<2x2x96xf16>
// CHECK-DAG: %[[W:.*]] = lowlp.alloc_shared : !lowlp.shared<2x128xui32>
// CHECK: lowlp.producer_warp {
// CHECK: scf.for %[[PLACE:.*]] = %{{.*}} to %c2
// CHECK: scf.if
// CHECK-NEXT: lowlp.mbarrier_expect_bytes %[[FULL:.*]][%[[PLACE]]] bytes 704
// CHECK-NOT: copy_tensor
// CHECK: %[[FROM:.*]] = arith.subi %{{.*}}, %[[PLACE]] : index
// CHECK: lowlp.copy_tensor %{{.*}}[%[[FROM]], %{{.*}}] to %[[W]][%[[PLACE]], %{{.*}}] shape [128]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: lowlp.wait_for_dependencies
// CHECK-NEXT: scf.for %[[PLACE:.*]] = %{{.*}} to %c2
// CHECK: scf.if
// CHECK-NOT: mbarrier
// CHECK: lowlp.copy_tensor %{{.*}} to %[[X]][%[[PLACE]], %{{.*}}, %{{.*}}] shape [96]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %{{.*}} = %c2 to %{{.*}} iter_args(%[[PLACE:.*]] = %c0, %[[PARITY:.*]] = %c1)
// CHECK-NEXT: arith.subi
// CHECK-NEXT: %[[BEFORE:.*]] = arith.xori %[[PARITY]], %c1
// CHECK-NEXT: lowlp.mbarrier_wait %[[EMPTY:.*]][%[[PLACE]]] parity %[[BEFORE]]
// CHECK-NEXT: lowlp.mbarrier_expect_bytes %[[FULL]][%[[PLACE]]] bytes 704
// CHECK: lowlp.copy_tensor
// CHECK: lowlp.copy_tensor
// The others wait too, before they write.
// CHECK: lowlp.wait_for_dependencies
// CHECK: scf.for
// CHECK-NEXT: lowlp.mbarrier_wait %[[FULL]][%[[PLACE:.*]]] parity
// CHECK-NEXT: lowlp.load_shared %[[X]][%[[PLACE]], %{{.*}}, %{{.*}}] in_bounds
// CHECK-NEXT: lowlp.load_shared %[[W]][%[[PLACE]], %{{.*}}] in_bounds
// CHECK: lowlp.mbarrier_arrive %[[EMPTY]][%[[PLACE]]]

// ASYNC-LABEL: lowlp.kernel @producer
// ASYNC-SAME: lowlp.report = {pipelines = ["2 stages of 704 bytes by asynchronous copies"]
// ASYNC: lowlp.wait_for_dependencies
// ASYNC: lowlp.copy_async %
// ASYNC: scf.for
// ASYNC: lowlp.copy_async_wait 0
// ASYNC-NEXT: lowlp.synchronize
lowlp.kernel @producer(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<ui32> {lowlp.align = 32 : i64, lowlp.constant},
    %y: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %last = arith.subi %count, %c1 : index
  %xv = lowlp.view_global %x shape [%count, 96] : !lowlp.ptr<f16> -> !lowlp.global<?x96xf16>
  %wv = lowlp.view_global %w shape [%count, 128] : !lowlp.ptr<ui32> -> !lowlp.global<?x128xui32>
  %yv = lowlp.view_global %y shape [%count, 96] : !lowlp.ptr<f16> -> !lowlp.global<?x96xf16>
  lowlp.wait_for_dependencies
  scf.for %i = %c0 to %count step %c1 {
    %from = arith.subi %last, %i : index
    %a = lowlp.load_global %xv[%from, %c0] : !lowlp.global<?x96xf16> -> !row
    %b = lowlp.load_global %wv[%from, %c0] : !lowlp.global<?x128xui32> -> !words
    lowlp.print_tile "b", %b : !words
    lowlp.store_global %a, %yv[%i, %c0] : !row, !lowlp.global<?x96xf16>
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// Without a producer the first thread does it.
// CHECK-LABEL: lowlp.kernel @constants_first
// CHECK-NOT: lowlp.producer_warp
// CHECK: lowlp.synchronize
// CHECK: lowlp.first_thread {
// CHECK: lowlp.mbarrier_expect_bytes
// CHECK: lowlp.copy_tensor %[[W:.*]][%{{.*}}, %{{.*}}] to
// CHECK-NOT: lowlp.copy_tensor
// CHECK: lowlp.wait_for_dependencies
// CHECK: lowlp.first_thread {
// CHECK-NOT: lowlp.mbarrier_expect_bytes
// CHECK: lowlp.copy_tensor
// CHECK-NOT: lowlp.copy_tensor %[[W]]
// CHECK: iter_args
lowlp.kernel @constants_first(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.constant},
    %y: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %wv = lowlp.view_global %w shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  scf.for %i = %c0 to %count step %c1 {
    %a = lowlp.load_global %xv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    %b = lowlp.load_global %wv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    %sum = lowlp.add %a, %b : !row
    lowlp.store_global %sum, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// A block that may end before the loop has no producer, which would wait for it.
// CHECK-LABEL: lowlp.kernel @may_end
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 128 bytes by tensor copies"]
// CHECK-NOT: lowlp.producer_warp
lowlp.kernel @may_end(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %count = arith.index_cast %n : i32 to index
  %few = arith.cmpi slt, %count, %c9 : index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.if %few {
    lowlp.exit
  }
  scf.for %i = %c0 to %count step %c1 {
    %a = lowlp.load_global %xv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    lowlp.store_global %a, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// Nor has a kernel that waits for the launch before it further in front: the producer would not.
// CHECK-LABEL: lowlp.kernel @waits_before
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 128 bytes by tensor copies"]
// CHECK-NOT: lowlp.producer_warp
// CHECK: lowlp.wait_for_dependencies
// CHECK: lowlp.copy_tensor
lowlp.kernel @waits_before(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  lowlp.print "waited"
  scf.for %i = %c0 to %count step %c1 {
    %a = lowlp.load_global %xv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    lowlp.store_global %a, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// It does where no more than reads stands between: the warps that read wait by themselves.
// CHECK-LABEL: lowlp.kernel @reads_before
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 128 bytes by tensor copies of a producer warp"]
// CHECK: lowlp.producer_warp {
// CHECK: lowlp.wait_for_dependencies
// CHECK: lowlp.copy_tensor
// CHECK: lowlp.wait_for_dependencies
// CHECK-NEXT: lowlp.load_global
lowlp.kernel @reads_before(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  %a = lowlp.load_global %yv[%c0, %c0] : !lowlp.global<?x64xf16> -> !row
  scf.for %i = %c0 to %count step %c1 {
    %b = lowlp.load_global %xv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    %sum = lowlp.add %a, %b : !row
    lowlp.store_global %sum, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// Without one the wait stays in front of what is read, and all copies follow.
// CHECK-LABEL: lowlp.kernel @reads_before_alone
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 128 bytes by tensor copies"]
// CHECK-NOT: lowlp.copy_tensor
// CHECK: lowlp.wait_for_dependencies
// CHECK-NEXT: lowlp.load_global
// CHECK: lowlp.copy_tensor
lowlp.kernel @reads_before_alone(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  %a = lowlp.load_global %yv[%c0, %c0] : !lowlp.global<?x64xf16> -> !row
  scf.for %i = %c0 to %count step %c1 {
    %b = lowlp.load_global %xv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    %sum = lowlp.add %a, %b : !row
    lowlp.store_global %sum, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// One that copies constants alone need not wait, and begins with the kernel.
// CHECK-LABEL: lowlp.kernel @waits_for_others
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 128 bytes by tensor copies of a producer warp"]
// CHECK: lowlp.producer_warp {
// CHECK-NOT: lowlp.wait_for_dependencies
// CHECK: lowlp.copy_tensor
// CHECK: lowlp.wait_for_dependencies
// CHECK-NEXT: lowlp.load_global
lowlp.kernel @waits_for_others(%x: !lowlp.ptr<f16>, %w: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.constant},
    %y: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %wv = lowlp.view_global %w shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  %a = lowlp.load_global %xv[%c0, %c0] : !lowlp.global<?x64xf16> -> !row
  scf.for %i = %c0 to %count step %c1 {
    %b = lowlp.load_global %wv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    %sum = lowlp.add %a, %b : !row
    lowlp.store_global %sum, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>
!bits = !lowlp.tile<64xui4, spatial(32).local(2)>

// What cannot be loaded ahead stays as it is: what the kernel writes, semaphores, places that another load says, parts of
// bytes. The attributes are gone all the same.
// CHECK-LABEL: lowlp.kernel @none
// CHECK-NOT: lowlp.pipelines
// CHECK-NOT: lowlp.stages
// CHECK-NOT: lowlp.alloc_shared
// CHECK-COUNT-4: lowlp.load_global
// CHECK-NOT: lowlp.stages
lowlp.kernel @none(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui4> {lowlp.align = 16 : i64},
    %s: !lowlp.ptr<si32> {lowlp.align = 16 : i64}, %z: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %qv = lowlp.view_global %q shape [%count, 64] : !lowlp.ptr<ui4> -> !lowlp.global<?x64xui4>
  %sv = lowlp.view_global %s shape [%count] : !lowlp.ptr<si32> -> !lowlp.global<?xsi32>
  %zv = lowlp.view_global %z shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %r = scf.for %i = %c0 to %count step %c1 iter_args(%from = %c0) -> (index) {
    %a = lowlp.load_global %xv[%i, %c0] : !lowlp.global<?x64xf16> -> !row
    %b = lowlp.load_global %zv[%from, %c0] : !lowlp.global<?x64xf16> -> !row
    %c = lowlp.load_global %sv[%i] : !lowlp.global<?xsi32> -> !lowlp.tile<32xsi32, spatial(32)>
    %d = lowlp.load_global %qv[%i, %c0] : !lowlp.global<?x64xui4> -> !bits
    lowlp.print_tile "c", %c : !lowlp.tile<32xsi32, spatial(32)>
    lowlp.print_tile "d", %d : !bits
    %sum = lowlp.add %a, %b : !row
    lowlp.store_global %sum, %xv[%i, %c0] : !row, !lowlp.global<?x64xf16>
    lowlp.semaphore_release %sv[%i], %c1 : !lowlp.global<?xsi32>
    %double = arith.addi %from, %i : index
    scf.yield %double : index
  } {lowlp.stages = #lowlp.stages<3, producer = true>}
  lowlp.return
}

// -----

!matrices = !lowlp.tile<8x32xf16, column_local(1, 2).local(1, 2).spatial(8, 4).local(1, 2)>
!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!row = !lowlp.tile<64xf16, local(2).spatial(32)>

// Neighbours are copied at once, and what two loads read is copied and read once: halves of rows as rows with the swizzle
// of 128 bytes, words along K, and rows of scales of which the second is known by an exact division. What may be anywhere
// is copied alone.
// CHECK-LABEL: lowlp.kernel @neighbours
// CHECK-SAME: lowlp.report = {pipelines = ["2 stages of 3456 bytes by tensor copies"]
// CHECK-DAG: %[[X:.*]] = lowlp.alloc_shared : !lowlp.shared<2x2x8x64xf16, local(2, 2, 1, 1).swizzle(local(8, 8), dim=1).local(1, 1, 1, 8)>
// CHECK-DAG: %[[W:.*]] = lowlp.alloc_shared : !lowlp.shared<2x1x2x128xui32>
// CHECK-DAG: %[[S:.*]] = lowlp.alloc_shared : !lowlp.shared<2x2x64xf16>
// CHECK-DAG: %[[T:.*]] = lowlp.alloc_shared : !lowlp.shared<2x64xf16>
// CHECK: lowlp.first_thread {
// CHECK: lowlp.copy_tensor %{{.*}} to %[[X]][%{{.*}}] shape [2, 8, 64]
// CHECK: lowlp.copy_tensor %{{.*}} to %[[W]][%{{.*}}] shape [1, 2, 128]
// CHECK: lowlp.copy_tensor %{{.*}} to %[[S]][%{{.*}}] shape [2, 64]
// CHECK: lowlp.copy_tensor %{{.*}} to %[[T]][%{{.*}}] shape [64]
// CHECK-NOT: copy_tensor
// CHECK: scf.for
// CHECK: lowlp.mbarrier_wait
// CHECK-DAG: lowlp.load_shared %[[X]][%[[PLACE:.*]], %c0, %c0, %c0]
// CHECK-DAG: lowlp.load_shared %[[X]][%[[PLACE]], %c0, %c0, %c32]
// CHECK-DAG: lowlp.load_shared %[[X]][%[[PLACE]], %c1, %c0, %c0]
// CHECK-DAG: lowlp.load_shared %[[X]][%[[PLACE]], %c1, %c0, %c32]
// CHECK-DAG: lowlp.load_shared %[[W]][%[[PLACE]], %c0, %c0, %c0]
// CHECK-DAG: lowlp.load_shared %[[W]][%[[PLACE]], %c0, %c1, %c0]
// CHECK-DAG: lowlp.load_shared %[[S]][%[[PLACE]], %c0, %c0]
// CHECK-DAG: lowlp.load_shared %[[S]][%[[PLACE]], %c1, %c0]
// CHECK: lowlp.mbarrier_arrive
lowlp.kernel @neighbours(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<ui32> {lowlp.align = 16 : i64},
    %s: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 8, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x8x64xf16>
  %wv = lowlp.view_global %w shape [%count, 8, 128] : !lowlp.ptr<ui32> -> !lowlp.global<?x8x128xui32>
  %sv = lowlp.view_global %s shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %count step %c1 {
    %narrow = arith.index_castui %i : index to i32
    %u = arith.index_castui %narrow : i32 to index
    %even = arith.muli %u, %c2 : index
    %odd = arith.addi %even, %c1 : index
    %x00 = lowlp.load_global %xv[%even, %c0, %c0] : !lowlp.global<?x8x64xf16> -> !matrices
    %w0 = lowlp.load_global %wv[%u, %c0, %c0] : !lowlp.global<?x8x128xui32> -> !words
    %x01 = lowlp.load_global %xv[%even, %c0, %c32] : !lowlp.global<?x8x64xf16> -> !matrices
    %w0again = lowlp.load_global %wv[%u, %c0, %c0] : !lowlp.global<?x8x128xui32> -> !words
    %x10 = lowlp.load_global %xv[%odd, %c0, %c0] : !lowlp.global<?x8x64xf16> -> !matrices
    %x11 = lowlp.load_global %xv[%odd, %c0, %c32] : !lowlp.global<?x8x64xf16> -> !matrices
    %w1 = lowlp.load_global %wv[%u, %c1, %c0] : !lowlp.global<?x8x128xui32> -> !words
    %twice = arith.addi %even, %c2 : index
    %same = arith.divsi %even, %c2 : index
    %next = arith.divsi %twice, %c2 : index
    %other = arith.divsi %odd, %c2 : index
    %s0 = lowlp.load_global %sv[%same, %c0] : !lowlp.global<?x64xf16> -> !row
    %s1 = lowlp.load_global %sv[%next, %c0] : !lowlp.global<?x64xf16> -> !row
    %s2 = lowlp.load_global %sv[%other, %c0] : !lowlp.global<?x64xf16> -> !row
    lowlp.print_tile "x", %x00 : !matrices
    lowlp.print_tile "x", %x01 : !matrices
    lowlp.print_tile "x", %x10 : !matrices
    lowlp.print_tile "x", %x11 : !matrices
    lowlp.print_tile "w", %w0 : !words
    lowlp.print_tile "w", %w0again : !words
    lowlp.print_tile "w", %w1 : !words
    lowlp.print_tile "s", %s0 : !row
    lowlp.print_tile "s", %s1 : !row
    lowlp.print_tile "s", %s2 : !row
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

!fragments = !lowlp.tile<16x128xf16, local(1, 16).local(2, 1).column_spatial(4, 8).local(2, 1)>

// Matrices whose elements lie in registers along the rows of memory's other dimension are read by `ldmatrix.trans`, and
// have the swizzle too. Rows of more than 128 bytes have panels.
// CHECK-LABEL: lowlp.kernel @across
// CHECK: lowlp.alloc_shared : !lowlp.shared<2x16x128xf16, local(2, 1, 2).swizzle(local(16, 8), dim=1).local(1, 1, 8)>
// ASYNC-LABEL: lowlp.kernel @across
// ASYNC: lowlp.alloc_shared : !lowlp.shared<2x16x128xf16, local(2, 1, 2).swizzle(local(16, 8), dim=1).local(1, 1, 8)>
lowlp.kernel @across(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %x shape [%n, 16, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x16x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0, %c0] : !lowlp.global<?x16x128xf16> -> !fragments
    lowlp.print_tile "t", %t : !fragments
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}

// -----

!fragments = !lowlp.tile<16x64xf16, local(1, 8).local(2, 1).column_spatial(4, 8).local(2, 1)>

// CHECK-LABEL: lowlp.kernel @across_rows_of_128_bytes
// CHECK: lowlp.alloc_shared : !lowlp.shared<2x16x64xf16, local(2, 1, 1).swizzle(local(16, 8), dim=1).local(1, 1, 8)>
lowlp.kernel @across_rows_of_128_bytes(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %x shape [%n, 16, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x16x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    %t = lowlp.load_global %v[%i, %c0, %c0] : !lowlp.global<?x16x64xf16> -> !fragments
    lowlp.print_tile "t", %t : !fragments
  } {lowlp.stages = #lowlp.stages<2>}
  lowlp.return
}
