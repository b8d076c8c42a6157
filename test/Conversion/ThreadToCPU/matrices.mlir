// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu | FileCheck %s

// Matrix instructions become calls that name how many matrices, and whether rows and columns change places.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @matrices(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr,
    gpu.func @matrices(%offset: i64) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      // CHECK: %[[BASE:.*]] = llvm.call @lowlpCpuSharedMemory
      %p = simt.shared_memory 0 : !simt.ptr<shared>
      // CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
      // CHECK: %[[PLAIN:.*]] = llvm.mlir.constant(0 : i32)
      // CHECK: llvm.call @lowlpCpuLoadMatrix(%[[THREAD]], %[[BASE]], %[[OFFSET:.*]], %[[FOUR]], %[[PLAIN]], %[[WORDS:.*]], %{{.*}})
      // CHECK: %[[V:.*]] = llvm.load %[[WORDS]] : !llvm.ptr -> vector<4xi32>
      %v = simt.ldmatrix %p[%offset] : !simt.ptr<shared> -> vector<4xi32>
      // CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
      // CHECK: %[[TRANS:.*]] = llvm.mlir.constant(1 : i32)
      // CHECK: llvm.store %[[V]], %[[WORDS]]
      // CHECK: llvm.call @lowlpCpuStoreMatrix(%[[THREAD]], %[[BASE]], %[[OFFSET]], %[[FOUR]], %[[TRANS]], %[[WORDS]], %{{.*}})
      simt.stmatrix %v, %p[%offset] trans : vector<4xi32>, !simt.ptr<shared>
      gpu.return
    }

    // The kinds, by number: s8 u8 is 3, e5m2 e4m3 is 8, bits are 10, and 11 of K = 128.
    // CHECK-LABEL: llvm.func @kinds(
    gpu.func @kinds(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xi32>
      %b = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<2xi32>
      %f = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      // CHECK: %[[S8U8:.*]] = llvm.mlir.constant(3 : i32)
      // CHECK: llvm.call @lowlpCpuMma(%{{.*}}, %[[S8U8]],
      %c = simt.mma %a as si8, %b as ui8, %a : vector<4xi32>, vector<2xi32>, vector<4xi32>
      // CHECK: %[[FLOATS:.*]] = llvm.mlir.constant(8 : i32)
      // CHECK: llvm.call @lowlpCpuMma(%{{.*}}, %[[FLOATS]],
      %d = simt.mma %a as f8E5M2, %b as f8E4M3FN, %f : vector<4xi32>, vector<2xi32>, vector<4xf32>
      // CHECK: %[[BITS:.*]] = llvm.mlir.constant(10 : i32)
      // CHECK: llvm.call @lowlpCpuMma(%{{.*}}, %[[BITS]],
      %e = simt.mma %a as ui1, %b as ui1, %c : vector<4xi32>, vector<2xi32>, vector<4xi32>
      // CHECK: %[[HALF:.*]] = llvm.mlir.constant(11 : i32)
      // CHECK: llvm.call @lowlpCpuMma(%{{.*}}, %[[HALF]],
      %h = simt.load %p[%0] align 4 : !simt.ptr<global> -> vector<1xi32>
      %k = simt.mma %b as ui1, %h as ui1, %e : vector<2xi32>, vector<1xi32>, vector<4xi32>
      simt.store %k, %p[%0] align 16 : vector<4xi32>, !simt.ptr<global>
      simt.store %d, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      simt.store %e, %p[%0] align 16 : vector<4xi32>, !simt.ptr<global>
      gpu.return
    }
  }
}
