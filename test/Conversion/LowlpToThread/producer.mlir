// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// The producer is the warp after the two of the kernel. It makes the mbarriers and begins; the others wait until it has.
// From then on barriers are of two. What one thread does is not asked again whether it is the first.
// CHECK-LABEL: gpu.func @producer
// CHECK-SAME: known_block_size = array<i32: 96, 1, 1>
// CHECK-SAME: lowlp.dependent_launch
// CHECK-SAME: lowlp.producer_threads = 32
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[THREAD:.*]], %c64 : index
// CHECK: scf.if %[[IS_FIRST]]
// CHECK: simt.mbarrier_init %[[FULL:.*]][%{{.*}}] arrivals 1 : <shared>
// CHECK: simt.mbarrier_init %[[EMPTY:.*]][%{{.*}}] arrivals 2 by_warps : <shared>
// CHECK-NOT: {{gpu|simt}}.barrier
// CHECK: %[[IS_PRODUCER:.*]] = arith.cmpi uge, %[[THREAD]], %c64 : index
// CHECK: scf.if %[[IS_PRODUCER]] {
// CHECK-NEXT: simt.leave_barriers threads 96
// CHECK-NEXT: scf.if %[[IS_FIRST]] {
// CHECK-NEXT: simt.wait_for_dependencies
// CHECK-NEXT: simt.mbarrier_wait %[[EMPTY]]
// CHECK-NEXT: simt.fence_async
// CHECK-NEXT: simt.mbarrier_arrive %[[FULL]][%{{.*}}] expects 512 : <shared>
// CHECK-NOT: scf.if
// CHECK: simt.copy_tensor
// CHECK: }
// CHECK-NEXT: simt.exit
// CHECK-NEXT: }
// CHECK-NEXT: simt.barrier threads 96
// CHECK: simt.wait_for_dependencies
// CHECK: simt.mbarrier_wait %[[FULL]]
// CHECK: simt.mbarrier_arrive %[[EMPTY]][%{{.*}}] by_warp : <shared>
// CHECK: simt.barrier threads 64
// CHECK-NOT: gpu.barrier
// CHECK: simt.launch_dependents
lowlp.kernel @producer(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %empty = lowlp.alloc_mbarriers arrivals 2 by_warps : !lowlp.mbarriers<1>
  %s = lowlp.alloc_shared : !lowlp.shared<256xf16>
  lowlp.producer_warp {
    %v = lowlp.view_global %p shape [256] : !lowlp.ptr<f16> -> !lowlp.global<256xf16>
    lowlp.wait_for_dependencies
    lowlp.mbarrier_wait %empty[%c0] parity %c1 : !lowlp.mbarriers<1>
    lowlp.fence_async
    lowlp.mbarrier_expect_bytes %full[%c0] bytes 512 : !lowlp.mbarriers<1>
    lowlp.copy_tensor %v[%c0] to %s[%c0] shape [256] signals %full[%c0]
      : !lowlp.global<256xf16> to !lowlp.shared<256xf16>, !lowlp.mbarriers<1>
  }
  lowlp.wait_for_dependencies
  lowlp.mbarrier_wait %full[%c0] parity %c0 : !lowlp.mbarriers<1>
  %t = lowlp.load_shared %s[%c0] : !lowlp.shared<256xf16> -> !lowlp.tile<256xf16, spatial(64).local(4)>
  lowlp.mbarrier_arrive %empty[%c0] : !lowlp.mbarriers<1>
  lowlp.synchronize
  lowlp.launch_dependents
  %w = lowlp.view_global %y shape [256] : !lowlp.ptr<f16> -> !lowlp.global<256xf16>
  lowlp.store_global %t, %w[%c0] : !lowlp.tile<256xf16, spatial(64).local(4)>, !lowlp.global<256xf16>
  lowlp.return
}

// The first thread of the block is one of its workers.
// CHECK-LABEL: gpu.func @first_thread
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>
// CHECK-NOT: lowlp.dependent_launch
// CHECK: simt.mbarrier_init
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c2
// CHECK-NOT: scf.if
// CHECK: simt.mbarrier_arrive %{{.*}}[%{{.*}}] expects 64 : <shared>
// CHECK: gpu.return
lowlp.kernel @first_thread() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<2>
  lowlp.synchronize
  lowlp.first_thread {
    scf.for %i = %c0 to %c2 step %c1 {
      lowlp.mbarrier_expect_bytes %full[%i] bytes 64 : !lowlp.mbarriers<2>
    }
  }
  lowlp.return
}

// The producer is a warpgroup after the two of the kernel, which gives them its registers: of 65536, 384 threads begin with
// 168 each.
// CHECK-LABEL: gpu.func @exchange_registers
// CHECK-SAME: known_block_size = array<i32: 384, 1, 1>
// CHECK-SAME: lowlp.launch_registers = 168
// CHECK-SAME: lowlp.producer_threads = 128
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c256 : index
// CHECK: arith.cmpi uge, %{{.*}}, %c256 : index
// CHECK: simt.leave_barriers threads 384
// CHECK-NEXT: simt.set_registers 40{{$}}
// CHECK-NEXT: scf.if %[[IS_FIRST]]
// CHECK: simt.exit
// CHECK: simt.barrier threads 384
// CHECK: simt.set_registers 232 takes
// CHECK: simt.barrier threads 256
lowlp.kernel @exchange_registers() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64, schedule = #lowlp.schedule<exchange_registers = true>} {
  %c0 = arith.constant 0 : index
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  lowlp.producer_warp {
    lowlp.mbarrier_expect_bytes %full[%c0] bytes 64 : !lowlp.mbarriers<1>
  }
  lowlp.mbarrier_wait %full[%c0] parity %c0 : !lowlp.mbarriers<1>
  lowlp.synchronize
  lowlp.return
}

// The last of the warpgroups gives the first turn.
// CHECK-LABEL: gpu.func @turns
// CHECK: %[[IS_LAST:.*]] = arith.cmpi uge, %{{.*}}, %c128 : index
// CHECK-NEXT: scf.if %[[IS_LAST]] {
// CHECK-NEXT: simt.give_turn of 2
// CHECK-NEXT: }
// CHECK-NEXT: simt.take_turn of 2
// CHECK-NEXT: simt.give_turn of 2
lowlp.kernel @turns() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64} {
  lowlp.give_turn first
  lowlp.take_turn
  lowlp.give_turn
  lowlp.return
}

// Each block of a cluster copies its half, 16 rows of 128 bytes, to both, when the mbarriers of both are there.
// CHECK-LABEL: gpu.func @multicast
// CHECK: simt.mbarrier_init %[[EMPTY:.*]][%{{.*}}] arrivals 4 by_warps : <shared>
// CHECK: simt.cluster_barrier
// CHECK: scf.if
// CHECK-NEXT: simt.leave_barriers
// CHECK: %[[NUMBER:.*]] = arith.remui %{{.*}}, %c2 : index
// CHECK: %[[ROW:.*]] = arith.muli %[[NUMBER]], %c16 : index
// CHECK: %[[BYTES:.*]] = arith.muli %{{.*}}, %c2048_i64 : i64
// CHECK: simt.copy_tensor {{.*}} to %{{.*}}[%{{.*}}] box [16, 64] element_bytes 2 swizzle 128 signals {{.*}} {lowlp.multicast = #lowlp.multicast<2>}
// CHECK: simt.mbarrier_arrive %[[EMPTY]][%{{.*}}] by_warp {lowlp.multicast = #lowlp.multicast<2>} : <shared>
lowlp.kernel @multicast(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (2)>, num_threads = 64 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps {lowlp.multicast = #lowlp.multicast<2>} : !lowlp.mbarriers<1>
  %s = lowlp.alloc_shared : !lowlp.shared<1x32x64xf16, local(1, 1, 1).swizzle(local(32, 8), dim=1).local(1, 1, 8)>
  lowlp.producer_warp {
    %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
    lowlp.mbarrier_wait %empty[%c0] parity %c1 : !lowlp.mbarriers<1>
    lowlp.mbarrier_expect_bytes %full[%c0] bytes 4096 : !lowlp.mbarriers<1>
    lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [32, 64] signals %full[%c0] {lowlp.multicast = #lowlp.multicast<2>}
      : !lowlp.global<64x64xf16> to !lowlp.shared<1x32x64xf16, local(1, 1, 1).swizzle(local(32, 8), dim=1).local(1, 1, 8)>, !lowlp.mbarriers<1>
  } {lowlp.multicast = #lowlp.multicast<2>}
  lowlp.mbarrier_wait %full[%c0] parity %c0 : !lowlp.mbarriers<1>
  lowlp.mbarrier_arrive %empty[%c0] : !lowlp.mbarriers<1>
  lowlp.return
}
