// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: lowlp.kernel @copies
lowlp.kernel @copies(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<3x16x32xf16>
  // CHECK: lowlp.copy_async %{{.*}}[%[[C:.*]], %[[C]]] to %{{.*}}[%[[C]], %[[C]], %[[C]]] shape [16, 32] : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x32xf16>
  // GENERIC: "lowlp.copy_async"({{.*}}) <{operandSegmentSizes = array<i32: 1, 2, 1, 3>, shape = array<i64: 16, 32>}>
  lowlp.copy_async %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [16, 32]
    : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x32xf16>
  // CHECK: lowlp.copy_async {{.*}} shape [32] in_bounds {test.note} :
  lowlp.copy_async %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [32] in_bounds {test.note}
    : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x32xf16>
  // CHECK: lowlp.copy_async_commit
  // GENERIC: "lowlp.copy_async_commit"() : () -> ()
  lowlp.copy_async_commit
  // CHECK: lowlp.copy_async_wait 2
  // GENERIC: "lowlp.copy_async_wait"() <{n = 2 : i64}> : () -> ()
  lowlp.copy_async_wait 2
  lowlp.return
}
