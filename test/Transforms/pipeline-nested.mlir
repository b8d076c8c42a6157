// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings,lowlp-pipeline),canonicalize,cse)" | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings{arch=sm_80},lowlp-pipeline{arch=sm_80}),canonicalize,cse)" | FileCheck %s --check-prefix=ASYNC

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// The producer has both loops, in 32 bits, and begins the copies of a loop while others finish the one before. The
// first iterations of the first loop it copies in two parts: %w before it waits for the launch before.
// CHECK-LABEL: lowlp.kernel @producer
// CHECK: lowlp.producer_warp {
// CHECK: lowlp.mbarrier_expect_bytes %[[FULL:.*]][%{{.*}}] bytes 256
// CHECK: lowlp.copy_tensor
// CHECK-NOT: lowlp.copy_tensor
// CHECK: lowlp.wait_for_dependencies
// CHECK: lowlp.copy_tensor
// CHECK: %[[TRIPS:.*]] = arith.minui %{{.*}}, %c3
// CHECK: scf.for %[[I:.*]] = %{{.*}} iter_args(%[[PLACE:.*]] = %{{.*}}, %[[PARITY:.*]] = %{{.*}}, %[[MADE:.*]] = %[[TRIPS]]) -> (i32, i32, index)
// CHECK: %[[END:.*]]:2 = scf.for %{{.*}} = %[[MADE]] to %[[I]] step %{{.*}} iter_args(%[[AT:.*]] = %[[PLACE]], %[[ROUND:.*]] = %[[PARITY]]) -> (i32, i32)
// CHECK: lowlp.mbarrier_wait %[[EMPTY:.*]][%{{.*}}] parity
// CHECK: lowlp.mbarrier_expect_bytes %[[FULL]]
// CHECK-COUNT-2: lowlp.copy_tensor
// CHECK: scf.yield %[[END]]#0, %[[END]]#1, %c0 : i32, i32, index
// CHECK: lowlp.wait_for_dependencies
// CHECK: scf.for %{{.*}} iter_args(%[[PLACE:.*]] = %c0, %[[PARITY:.*]] = %c0)
// CHECK: %[[END:.*]]:3 = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %[[AT:.*]] = %[[PLACE]], %[[ROUND:.*]] = %[[PARITY]])
// CHECK: lowlp.mbarrier_wait %[[FULL]][%[[AT]]] parity %[[ROUND]]
// CHECK: lowlp.mbarrier_arrive %[[EMPTY]][%[[AT]]]
// CHECK: lowlp.store_global %[[END]]#0
// CHECK-NEXT: scf.yield %[[END]]#1, %[[END]]#2

// By asynchronous copies of all threads, which have read the last places when the next loop's are filled.
// ASYNC-LABEL: lowlp.kernel @producer
// ASYNC: lowlp.wait_for_dependencies
// ASYNC-NEXT: scf.for
// ASYNC: lowlp.synchronize
// ASYNC-NEXT: scf.for
// ASYNC: lowlp.copy_async
// ASYNC: scf.for
// ASYNC-NEXT: lowlp.copy_async_wait 1
// ASYNC: lowlp.copy_async_wait 0
// ASYNC-NEXT: lowlp.store_global
lowlp.kernel @producer(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %w: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.constant},
    %y: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f16
  %zeros = lowlp.splat %zero : f16 -> !row
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %wv = lowlp.view_global %w shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  scf.for %i = %c1 to %count step %c1 {
    %sum = scf.for %j = %c0 to %i step %c1 iter_args(%acc = %zeros) -> (!row) {
      %at = arith.subi %i, %j : index
      %a = lowlp.load_global %xv[%at, %c0] : !lowlp.global<?x64xf16> -> !row
      %b = lowlp.load_global %wv[%j, %c0] : !lowlp.global<?x64xf16> -> !row
      %next = lowlp.fma %a, %b, %acc : !row
      scf.yield %next : !row
    } {lowlp.stages = #lowlp.stages<3, producer = true>}
    lowlp.store_global %sum, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
  }
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// Without a producer the first thread fills all places but one at the begin of each loop, when they have been read.
// CHECK-LABEL: lowlp.kernel @first_thread
// CHECK: scf.for %{{.*}} iter_args(%[[PLACE:.*]] = %c0, %[[PARITY:.*]] = %c0)
// CHECK-NEXT: lowlp.first_thread {
// CHECK-NEXT: scf.for %[[J:.*]] = %c0 to %c2 step %c1 iter_args(%[[AT:.*]] = %[[PLACE]], %[[ROUND:.*]] = %[[PARITY]])
// CHECK: %[[BEFORE:.*]] = arith.xori %[[ROUND]], %c1
// CHECK: scf.if
// CHECK-NEXT: lowlp.mbarrier_wait %{{.*}}[%[[AT]]] parity %[[BEFORE]]
// CHECK-NEXT: lowlp.mbarrier_expect_bytes
// CHECK-NEXT: lowlp.copy_tensor %{{.*}}[%[[J]], %c0]
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %[[PLACE]], %{{.*}} = %[[PARITY]])
lowlp.kernel @first_thread(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.index_cast %n : i32 to index
  %xv = lowlp.view_global %x shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %yv = lowlp.view_global %y shape [%count, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %count step %c1 {
    scf.for %j = %c0 to %count step %c1 {
      %a = lowlp.load_global %xv[%j, %c0] : !lowlp.global<?x64xf16> -> !row
      lowlp.store_global %a, %yv[%i, %c0] : !row, !lowlp.global<?x64xf16>
    } {lowlp.stages = #lowlp.stages<3>}
  }
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>
!word = !lowlp.tile<32xsi32, spatial(32)>
!table = !lowlp.shared<32xsi32, local(32)>

// What the block keeps in shared memory the producer reads too, once all threads have said that it is there.
// CHECK-LABEL: lowlp.kernel @kept
// CHECK: %[[KEPT:.*]] = lowlp.alloc_mbarriers arrivals 32 : !lowlp.mbarriers<1>
// CHECK: %[[TABLE:.*]] = lowlp.alloc_shared : !lowlp.shared<32xsi32>
// CHECK: lowlp.producer_warp {
// CHECK: lowlp.wait_for_dependencies
// CHECK-NEXT: lowlp.mbarrier_wait %[[KEPT]][%c0] parity %c0
// CHECK: %[[COUNT:.*]] = lowlp.load_scalar %[[TABLE]][%c0]
// CHECK: scf.for %[[I:.*]] = %c0 to %[[COUNT]]
// CHECK: %[[ROW:.*]] = lowlp.load_scalar %[[TABLE]][%[[I]]]
// CHECK: scf.for
// CHECK: lowlp.copy_tensor %{{.*}}[%[[ROW]], %{{.*}}]
// CHECK: lowlp.wait_for_dependencies
// CHECK: lowlp.store_shared %{{.*}}, %[[TABLE]]
// CHECK: lowlp.synchronize
// CHECK: lowlp.mbarrier_arrive %[[KEPT]][%c0]
// CHECK-NEXT: scf.for
lowlp.kernel @kept(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %rows: !lowlp.ptr<si32>, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f16
  %zeros = lowlp.splat %zero : f16 -> !row
  %xv = lowlp.view_global %x shape [32, 256] : !lowlp.ptr<f16> -> !lowlp.global<32x256xf16>
  %rv = lowlp.view_global %rows shape [32] : !lowlp.ptr<si32> -> !lowlp.global<32xsi32>
  %yv = lowlp.view_global %y shape [32, 64] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  lowlp.wait_for_dependencies
  %loaded = lowlp.load_global %rv[%c0] : !lowlp.global<32xsi32> -> !word
  %table = lowlp.alloc_shared : !table
  lowlp.store_shared %loaded, %table[%c0] : !word, !table
  lowlp.synchronize
  %count = lowlp.load_scalar %table[%c0] : !table -> index
  scf.for %i = %c0 to %count step %c1 {
    %row = lowlp.load_scalar %table[%i] : !table -> index
    %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%acc = %zeros) -> (!row) {
      %at = arith.muli %j, %c64 : index
      %a = lowlp.load_global %xv[%row, %at] : !lowlp.global<32x256xf16> -> !row
      %next = lowlp.add %a, %acc : !row
      scf.yield %next : !row
    } {lowlp.stages = #lowlp.stages<3, producer = true>}
    lowlp.store_global %sum, %yv[%row, %c0] : !row, !lowlp.global<32x64xf16>
  }
  lowlp.return
}
