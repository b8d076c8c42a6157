// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @atomics
    gpu.func @atomics(%p: !simt.ptr<global>, %s: !simt.ptr<shared>, %v: i32, %f: f32, %h: bf16, %b: vector<2xf16>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = arith.constant 16 : i64
      // CHECK: %[[KIND:.*]] = llvm.mlir.constant(7 : i32)
      // CHECK: llvm.call @lowlpCpuAtomic(%{{.*}}, %[[KIND]],
      %0 = simt.atomic_rmw min_s %v, %s[%i] : i32, !simt.ptr<shared>
      // CHECK: %[[BITS:.*]] = llvm.bitcast %{{.*}} : f32 to i32
      // CHECK: %[[KIND_F:.*]] = llvm.mlir.constant(9 : i32)
      // CHECK: llvm.call @lowlpCpuAtomic(%{{.*}}, %[[KIND_F]], %{{.*}}, %{{.*}}, %[[BITS]],
      // CHECK: llvm.bitcast %{{.*}} : i32 to f32
      %1 = simt.atomic_rmw add %f, %p[%i] : f32, !simt.ptr<global>
      // CHECK: llvm.zext %{{.*}} : i16 to i32
      // CHECK: llvm.call @lowlpCpuAtomicAdd16(
      %2 = simt.atomic_rmw add %h, %p[%i] : bf16, !simt.ptr<global>
      // CHECK: llvm.mlir.constant(10 : i32)
      // CHECK: llvm.call @lowlpCpuAtomic(
      %3 = simt.atomic_rmw add %b, %p[%i] : vector<2xf16>, !simt.ptr<global>
      // CHECK: llvm.call @lowlpCpuAtomicCas(
      %4 = simt.atomic_cas %v, %0, %p[%i] : !simt.ptr<global>
      // CHECK: %[[Q:.*]] = llvm.getelementptr
      %q = simt.offset %p[%i] : !simt.ptr<global>
      // CHECK: llvm.call @lowlpCpuAwait(%{{.*}}, %[[Q]],
      simt.acquire %v, %q[%i] : !simt.ptr<global>
      // CHECK: %[[STORE:.*]] = llvm.mlir.constant(3 : i32)
      // CHECK: llvm.call @lowlpCpuRelease(%{{.*}}, %[[STORE]], %[[Q]],
      simt.release store %v, %q[%i] : !simt.ptr<global>
      // CHECK: %[[ADD:.*]] = llvm.mlir.constant(2 : i32)
      // CHECK: llvm.call @lowlpCpuRelease(%{{.*}}, %[[ADD]],
      simt.release add %v, %q[%i] : !simt.ptr<global>
      gpu.return
    }
  }
}
