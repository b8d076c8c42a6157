// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu | FileCheck %s

// Accumulators in flight are a number; the executor tracks what fences of proxies order from the beginning.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @product(
    // CHECK-SAME: %[[THREAD:.*]]: !llvm.ptr,
    gpu.func @product(%g: !simt.ptr<global>, %i: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      // CHECK: %[[ACCUMULATORS:.*]] = llvm.alloca %{{.*}} x i8 {alignment = 16 : i64}
      // CHECK: llvm.call @lowlpCpuTrackOrder(%[[THREAD]])
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      %a = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<8xf16>
      %c = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<4xf32>
      // CHECK: llvm.call @lowlpCpuWgmmaFence(%[[THREAD]], %{{.*}})
      %f:2 = simt.wgmma_fence of %a, %c : vector<8xf16>, vector<4xf32>
      // CHECK: llvm.store %{{.*}}, %[[A:.*]] {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr
      // CHECK: llvm.store %{{.*}}, %[[ACCUMULATORS]] {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
      // CHECK: %[[T:.*]] = llvm.call @lowlpCpuWgmma(%[[THREAD]], %{{.*}}, %{{.*}}, %[[A]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ACCUMULATORS]], %{{.*}}, %{{.*}}) : {{.*}} -> i64
      %t = simt.wgmma %f#0, %s[%i] swizzle 128 leading 16 stride 1024 plus %f#1 : vector<4xf32>
        : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      // CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
      // CHECK: %[[U:.*]] = llvm.call @lowlpCpuWgmma({{.*}}, %[[NULL]], %[[T]], %{{.*}})
      %u = simt.wgmma %f#0, %s[%i] swizzle 128 leading 16 stride 1024 plus %t : !simt.accumulators<vector<4xf32>>
        : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      // CHECK: llvm.call @lowlpCpuWgmmaCommit(%[[THREAD]], %{{.*}})
      simt.wgmma_commit
      // CHECK-NOT: turn
      simt.take_turn of 2
      simt.give_turn of 2
      // CHECK: llvm.call @lowlpCpuWgmmaWait(%[[THREAD]], %{{.*}}, %[[SITE:[0-9]+]])
      // CHECK: llvm.call @lowlpCpuWgmmaTake(%[[THREAD]], %[[U]], %[[ACCUMULATORS]], %[[SITE]])
      // CHECK: llvm.load %[[ACCUMULATORS]] {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
      %d = simt.wgmma_wait 0 takes %u : (!simt.accumulators<vector<4xf32>>) -> vector<4xf32>
      simt.store %d, %g[%i] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }
  }
}
