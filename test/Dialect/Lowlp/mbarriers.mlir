// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: lowlp.kernel @ring
lowlp.kernel @ring(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[FULL:.*]] = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
  // GENERIC: "lowlp.alloc_mbarriers"() <{arrivals = 1 : i64}> : () -> !lowlp.mbarriers<3>
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
  %s = lowlp.alloc_shared : !lowlp.shared<3x16x64xf16>
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // CHECK: lowlp.mbarrier_expect_bytes %[[FULL]][%{{.*}}] bytes 2048 : !lowlp.mbarriers<3>
  lowlp.mbarrier_expect_bytes %full[%c0] bytes 2048 : !lowlp.mbarriers<3>
  // CHECK: lowlp.copy_bulk %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] shape [16, 64] signals %[[FULL]][%{{.*}}]
  lowlp.copy_bulk %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [16, 64] signals %full[%c0]
    : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x64xf16>, !lowlp.mbarriers<3>
  // CHECK: lowlp.copy_tensor %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] shape [16, 64] signals %[[FULL]][%{{.*}}]
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [16, 64] signals %full[%c0]
    : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x64xf16>, !lowlp.mbarriers<3>
  // CHECK: lowlp.mbarrier_wait %[[FULL]][%{{.*}}] parity %{{.*}} : !lowlp.mbarriers<3>
  lowlp.mbarrier_wait %full[%c0] parity %c0 : !lowlp.mbarriers<3>
  // CHECK: lowlp.mbarrier_arrive %[[FULL]][%{{.*}}] : !lowlp.mbarriers<3>
  lowlp.mbarrier_arrive %full[%c0] : !lowlp.mbarriers<3>
  // CHECK: lowlp.mbarrier_arrive %[[FULL]][%{{.*}}] loads_ended : !lowlp.mbarriers<3>
  lowlp.mbarrier_arrive %full[%c0] loads_ended : !lowlp.mbarriers<3>
  // CHECK: lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<2>
  // GENERIC: "lowlp.alloc_mbarriers"() <{arrivals = 4 : i64, by_warps}> : () -> !lowlp.mbarriers<2>
  %empty = lowlp.alloc_mbarriers arrivals 4 by_warps : !lowlp.mbarriers<2>
  // CHECK: lowlp.fence_async
  lowlp.fence_async
  // CHECK: lowlp.copy_bulk_to_global %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}, %{{.*}}] shape [16, 64] : !lowlp.shared<3x16x64xf16> to !lowlp.global<64x64xf16>
  lowlp.copy_bulk_to_global %s[%c0, %c0, %c0] to %v[%c0, %c0] shape [16, 64]
    : !lowlp.shared<3x16x64xf16> to !lowlp.global<64x64xf16>
  // CHECK: lowlp.copy_bulk_commit
  lowlp.copy_bulk_commit
  // CHECK: lowlp.copy_bulk_wait 0 read
  lowlp.copy_bulk_wait 0 read
  lowlp.return
}

// Rows of more than 256 elements.
// CHECK-LABEL: func.func @long_rows
func.func @long_rows(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x4x448xf16>, %b: !lowlp.mbarriers<1>, %i: index) {
  %v = lowlp.view_global %p shape [64, 1024] : !lowlp.ptr<f16> -> !lowlp.global<64x1024xf16>
  // CHECK: lowlp.copy_tensor {{.*}} shape [4, 448] signals
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i, %i] shape [4, 448] signals %b[%i]
    : !lowlp.global<64x1024xf16> to !lowlp.shared<3x4x448xf16>, !lowlp.mbarriers<1>
  return
}

// The swizzles of tensor copies.
// CHECK-LABEL: func.func @swizzles
func.func @swizzles(%p: !lowlp.ptr<f16>, %b: !lowlp.mbarriers<1>, %i: index,
    %s128: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>,
    %s64: !lowlp.shared<2x16x32xf16, local(2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>,
    %s32: !lowlp.shared<16x16xf16, swizzle(local(16, 2), dim=1, log_step=2).local(1, 8)>) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  lowlp.copy_tensor %v[%i, %i] to %s128[%i, %i] shape [16, 64] signals %b[%i]
    : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, !lowlp.mbarriers<1>
  lowlp.copy_tensor %v[%i, %i] to %s64[%i, %i, %i] shape [16, 32] signals %b[%i]
    : !lowlp.global<64x64xf16> to !lowlp.shared<2x16x32xf16, local(2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>, !lowlp.mbarriers<1>
  lowlp.copy_tensor %v[%i, %i] to %s32[%i, %i] shape [16, 16] signals %b[%i]
    : !lowlp.global<64x64xf16> to !lowlp.shared<16x16xf16, swizzle(local(16, 2), dim=1, log_step=2).local(1, 8)>, !lowlp.mbarriers<1>
  return
}
