// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu --split-input-file | FileCheck %s

// CHECK: module attributes {lowlp.kernels = {copy = {block_size = array<i32: 32, 1, 1>, grid = affine_map{{.*}}}}}
// CHECK-DAG: llvm.mlir.global internal constant @[[LOAD:.*]]("lowlp.load_global at fig2.mlir:12:8\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[STORE:.*]]("simt.store at {{.*}}memory.mlir:{{[0-9]+}}:7\00")
// CHECK-DAG: llvm.func @lowlpCpuCheckAccess(!llvm.ptr, !llvm.ptr, i64, i64, i64, i32, !llvm.ptr)
// CHECK-NOT: gpu.module
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @copy(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr, %[[ARGS:.*]]: !llvm.ptr)
    gpu.func @copy(%p: !simt.ptr<global>, %n: i32) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<(n) -> (n)>} {
      // CHECK: %[[PLACE0:.*]] = llvm.getelementptr %[[ARGS]][0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      // CHECK: %[[ADDRESS0:.*]] = llvm.load %[[PLACE0]] : !llvm.ptr -> !llvm.ptr
      // CHECK: %[[P:.*]] = llvm.load %[[ADDRESS0]] : !llvm.ptr -> !llvm.ptr
      // CHECK: llvm.getelementptr %[[ARGS]][1]
      // CHECK: llvm.load %{{.*}} : !llvm.ptr -> i32
      // CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(32 : i64)
      %offset = arith.constant 32 : i64
      // CHECK: %[[BYTES:.*]] = llvm.mlir.constant(16 : i64)
      // CHECK: %[[ALIGN:.*]] = llvm.mlir.constant(4 : i64)
      // CHECK: %[[READS:.*]] = llvm.mlir.constant(0 : i32)
      // CHECK: llvm.mlir.addressof @[[LOAD]]
      // CHECK: llvm.call @lowlpCpuCheckAccess(%[[THREAD]], %[[P]], %[[OFFSET]], %[[BYTES]], %[[ALIGN]], %[[READS]], %{{.*}})
      // CHECK: %[[FROM:.*]] = llvm.getelementptr %[[P]][%[[OFFSET]]]
      // CHECK: llvm.load %[[FROM]] {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
      %v = simt.load %p[%offset] align 4 : !simt.ptr<global> -> vector<4xi32> loc("lowlp.load_global"("fig2.mlir":12:8))
      // CHECK: llvm.mlir.constant(1 : i32)
      // CHECK: llvm.mlir.addressof @[[STORE]]
      // CHECK: llvm.call @lowlpCpuCheckAccess
      // CHECK: llvm.store
      simt.store %v, %p[%offset] align 16 : vector<4xi32>, !simt.ptr<global>
      // CHECK: llvm.return
      gpu.return
    }
  }
}

// -----

// CHECK-DAG: ("inside\00")
// CHECK-DAG: ("simt.atomic_rmw at an unknown place\00")
// CHECK-DAG: ("lowlp.print at k.py:7:3\00")
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @sync(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr,
    gpu.func @sync(%p: !simt.ptr<global>, %v: i32, %c: i1) kernel attributes {
        known_block_size = array<i32: 64, 1, 1>} {
      %zero = arith.constant 0 : i64
      // CHECK: %[[EXCHANGE:.*]] = llvm.mlir.constant(3 : i32)
      // CHECK: llvm.call @lowlpCpuAtomic(%[[THREAD]], %[[EXCHANGE]],
      %0 = simt.atomic_rmw exchange %v, %p[%zero] : i32, !simt.ptr<global> loc(unknown)
      // CHECK: llvm.zext %{{.*}} : i1 to i32
      // CHECK: llvm.call @lowlpCpuAssert(%[[THREAD]],
      simt.assert %c, "inside" loc(fused["lowlp.print"(callsite("f"("k.py":7:3) at "main.py":2:1)), "other.py":1:1])
      // CHECK: %[[X:.*]] = llvm.mlir.constant(0 : i32)
      // CHECK: llvm.call @lowlpCpuThreadId(%[[THREAD]], %[[X]]) : (!llvm.ptr, i32) -> i64
      %t = gpu.thread_id x
      // CHECK: %[[Z:.*]] = llvm.mlir.constant(2 : i32)
      // CHECK: llvm.call @lowlpCpuBlockId(%[[THREAD]], %[[Z]]) : (!llvm.ptr, i32) -> i64
      %b = gpu.block_id z
      %i = arith.addi %t, %b : index
      %offset = arith.index_cast %i : index to i64
      simt.store %0, %p[%offset] align 4 : i32, !simt.ptr<global>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @shared(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
    gpu.func @shared() kernel attributes {known_block_size = array<i32: 32, 1, 1>, lowlp.shared_bytes = 64 : i64} {
      // CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(32 : i64)
      // CHECK: %[[P:.*]] = llvm.call @lowlpCpuSharedMemory(%[[THREAD]], %[[OFFSET]]) : (!llvm.ptr, i64) -> !llvm.ptr
      // CHECK: llvm.call @lowlpCpuCheckAccess(%[[THREAD]], %[[P]],
      %p = simt.shared_memory 32 : !simt.ptr<shared>
      %zero = arith.constant 0 : i64
      %v = simt.load %p[%zero] align 4 : !simt.ptr<shared> -> i32
      simt.store %v, %p[%zero] align 4 : i32, !simt.ptr<shared>
      gpu.return
    }
  }
}
