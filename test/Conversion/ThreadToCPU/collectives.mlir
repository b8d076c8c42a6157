// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Scratch memory is allocated once, in the first block, however deep the op lies.
    // CHECK-LABEL: llvm.func @products(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr,
    // CHECK-COUNT-4: llvm.alloca %{{.*}} x i8 {alignment = 16 : i64}
    // CHECK-NOT: llvm.alloca
    gpu.func @products(%p: !simt.ptr<global>, %n: index) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %first = arith.constant 0 : index
      %one = arith.constant 1 : index
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<8xbf16>
      %b = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<4xbf16>
      %c = arith.constant dense<0.0> : vector<4xf32>
      %sum = scf.for %i = %first to %n step %one iter_args(%sum = %c) -> (vector<4xf32>) {
        // CHECK: %[[KIND:.*]] = llvm.mlir.constant(1 : i32)
        // CHECK: llvm.store %{{.*}} : vector<8xbf16>, !llvm.ptr
        // CHECK: llvm.store %{{.*}} : vector<4xbf16>, !llvm.ptr
        // CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr
        // CHECK: llvm.call @lowlpCpuMma(%[[THREAD]], %[[KIND]],
        // CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
        %once = simt.mma %a, %b, %sum : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
        // CHECK: llvm.call @lowlpCpuMma
        %twice = simt.mma %a, %b, %once : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
        scf.yield %twice : vector<4xf32>
      }
      simt.store %sum, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // CHECK-LABEL: llvm.func @exchange(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr,
    gpu.func @exchange(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %one = arith.constant 1 : i32
      %width = arith.constant 32 : i32
      %v = simt.load %p[%0] align 4 : !simt.ptr<global> -> f32
      // CHECK: %[[BITS:.*]] = llvm.bitcast %{{.*}} : f32 to i32
      // CHECK: %[[IDLE:.*]] = llvm.sub
      // CHECK: %[[MEMBERS:.*]] = llvm.lshr %{{.*}}, %[[IDLE]]
      // CHECK: %[[CLAMP:.*]] = llvm.sub
      // CHECK: %[[MODE:.*]] = llvm.mlir.constant(3 : i32)
      // CHECK: %[[RESULT:.*]] = llvm.call @lowlpCpuShuffle(%[[THREAD]], %[[MODE]], %[[BITS]], %{{.*}}, %[[CLAMP]], %[[MEMBERS]],
      // CHECK: llvm.bitcast %[[RESULT]] : i32 to f32
      // CHECK: llvm.trunc %{{.*}} : i32 to i1
      %w, %valid = gpu.shuffle xor %v, %one, %width : f32
      // CHECK: llvm.call @lowlpCpuBarrier(%[[THREAD]],
      gpu.barrier
      simt.store %w, %p[%0] align 4 : f32, !simt.ptr<global>
      gpu.return
    }
  }
}
