// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse --split-input-file | FileCheck %s

// CHECK-LABEL: gpu.func @barriers
// CHECK-SAME: lowlp.shared_bytes = 48 : i64
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : i64
// CHECK-DAG: %[[S:.*]] = simt.shared_memory 16 : <shared>
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[T]], %{{.*}} : index
// CHECK: scf.if %[[FIRST]] {
// CHECK: simt.mbarrier_init %[[S]][%{{.*}}] arrivals 32 : <shared>
// CHECK: simt.mbarrier_init %[[S]][%[[C8]]] arrivals 32 : <shared>
// CHECK: simt.mbarrier_init %[[S]][%{{.*}}] arrivals 32 : <shared>
// CHECK: simt.fence_mbarrier_init
// CHECK: }
// CHECK: gpu.barrier
// CHECK: simt.mbarrier_arrive %[[S]][%[[C8]]] : <shared>
// CHECK: scf.if %[[FIRST]] {
// CHECK: simt.mbarrier_arrive %[[S]][%[[C8]]] expects 64 : <shared>
// CHECK: %[[PARITY:.*]] = arith.andi %arg0, %[[C1]] : i32
// CHECK: simt.mbarrier_wait %[[S]][%[[C8]]] parity %[[PARITY]] : <shared>
// CHECK: simt.fence_async
lowlp.kernel @barriers(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c1 = arith.constant 1 : index
  %before = lowlp.alloc_shared : !lowlp.shared<8xsi8>
  %b = lowlp.alloc_mbarriers arrivals 32 : !lowlp.mbarriers<3>
  lowlp.synchronize
  lowlp.mbarrier_arrive %b[%c1] : !lowlp.mbarriers<3>
  lowlp.mbarrier_expect_bytes %b[%c1] bytes 64 : !lowlp.mbarriers<3>
  %round = arith.index_cast %n : i32 to index
  lowlp.mbarrier_wait %b[%c1] parity %round : !lowlp.mbarriers<3>
  lowlp.fence_async
  lowlp.return
}
