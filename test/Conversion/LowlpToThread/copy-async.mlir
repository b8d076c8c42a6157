// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Threads take chunks of 16 bytes in turn; what lies outside of the view is stored as zero.
// CHECK-LABEL: gpu.func @wide
// CHECK-DAG: %[[CHUNKS:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<8xf16>
// CHECK-DAG: %[[T:.*]] = gpu.thread_id x
// CHECK: scf.for %{{.*}} = %[[T]] to %[[CHUNKS]] step %[[THREADS]] {
// CHECK: scf.if
// CHECK: scf.if
// CHECK: simt.copy_async %{{.*}}[%{{.*}}] to %{{.*}}[%{{.*}}] bytes 16 : <global> to <shared>
// CHECK: } else {
// CHECK: simt.store %[[ZERO]], %{{.*}}[%{{.*}}] align 16
// CHECK: simt.copy_async_commit
// CHECK: simt.copy_async_wait 0
lowlp.kernel @wide(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %rows = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%rows, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<16x32xf16, swizzle(local(16, 4), dim=1).local(1, 8)>
  lowlp.copy_async %v[%rows, %c0] to %s[%c0, %c0] shape [16, 32]
    : !lowlp.global<?x64xf16> to !lowlp.shared<16x32xf16, swizzle(local(16, 4), dim=1).local(1, 8)>
  lowlp.copy_async_commit
  lowlp.copy_async_wait 0
  lowlp.return
}

// A pointer aligned to 4 bytes, and a promise.
// CHECK-LABEL: gpu.func @narrow
// CHECK: simt.assert
// CHECK: simt.copy_async {{.*}} bytes 4
// CHECK-NOT: simt.store
// CHECK: gpu.return
lowlp.kernel @narrow(%p: !lowlp.ptr<si8> {lowlp.align = 4 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<si8> -> !lowlp.global<64xsi8>
  %s = lowlp.alloc_shared : !lowlp.shared<64xsi8>
  lowlp.copy_async %v[%c0] to %s[%c0] shape [64] in_bounds : !lowlp.global<64xsi8> to !lowlp.shared<64xsi8>
  lowlp.return
}

// Less than 4 bytes at once: no asynchronous copy.
// CHECK-LABEL: gpu.func @plain
// CHECK-NOT: simt.copy_async
// CHECK: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK: simt.store %{{.*}} align 2 : f16, <shared>
// CHECK: simt.atomic_rmw and
// CHECK: gpu.return
lowlp.kernel @plain(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<si6>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<64xf16>
  lowlp.copy_async %v[%c0] to %s[%c0] shape [64] : !lowlp.global<64xf16> to !lowlp.shared<64xf16>
  %w = lowlp.view_global %q shape [63] : !lowlp.ptr<si6> -> !lowlp.global<63xsi6>
  %t = lowlp.alloc_shared : !lowlp.shared<63xsi6>
  lowlp.copy_async %w[%c0] to %t[%c0] shape [63] : !lowlp.global<63xsi6> to !lowlp.shared<63xsi6>
  lowlp.return
}
