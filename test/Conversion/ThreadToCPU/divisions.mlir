// RUN: lowlp-opt --lowlp-convert-thread-to-cpu %s | FileCheck %s

gpu.module @kernels {
  // A CPU traps at 0 and, with a sign, where the smallest number is divided by -1.
  // CHECK-LABEL: llvm.func @signed(
  // CHECK-DAG: %[[M:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
  // CHECK: %[[ZERO:.*]] = llvm.icmp "eq" %[[N:.*]], %{{.*}} : i64
  // CHECK: llvm.call @lowlpCpuAssert
  // CHECK: %[[LEAST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i64
  // CHECK: %[[MINUS:.*]] = llvm.icmp "eq" %[[N]], %{{.*}} : i64
  // CHECK: %[[WRAPS:.*]] = llvm.and %[[LEAST]], %[[MINUS]] : i1
  // CHECK: %[[TRAPS:.*]] = llvm.or %[[ZERO]], %[[WRAPS]] : i1
  // CHECK: %[[SAFE:.*]] = llvm.select %[[TRAPS]], %{{.*}}, %[[N]] : i1, i64
  // CHECK: llvm.sdiv %{{.*}}, %[[SAFE]] : i64
  gpu.func @signed(%m: i64, %n: i64, %p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %zero = arith.constant 0 : i64
    %q = arith.divsi %m, %n : i64
    simt.store %q, %p[%zero] align 8 : i64, <global>
    gpu.return
  }

  // CHECK-LABEL: llvm.func @known(
  // CHECK-NOT: lowlpCpuAssert
  // CHECK: llvm.udiv
  // CHECK-NOT: lowlpCpuAssert
  // CHECK: llvm.return
  gpu.func @known(%m: i64, %p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %zero = arith.constant 0 : i64
    %three = arith.constant 3 : i64
    %q = arith.divui %m, %three : i64
    simt.store %q, %p[%zero] align 8 : i64, <global>
    gpu.return
  }
}
