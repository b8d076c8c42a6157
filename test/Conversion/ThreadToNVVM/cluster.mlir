// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_90 | FileCheck %s
// RUN: not lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_89 2>&1 | FileCheck %s --check-prefix=WITHOUT

// WITHOUT: 'gpu.func' op {{.*}}barrier.cluster
// WITHOUT: 'simt.map_shared' op {{.*}}barrier.cluster
// WITHOUT: 'simt.store_async' op {{.*}}st.async
// WITHOUT: 'simt.cluster_barrier' op {{.*}}barrier.cluster
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @give
    // CHECK-SAME: nvvm.cluster_dim = array<i32: 4, 1, 1>
    // CHECK-SAME: nvvm.minctasm = 2 : i32
    gpu.func @give(%block: i32, %v: vector<4xi32>) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (4)>, lowlp.parameters = [{name = "block"}, {name = "v"}],
        lowlp.schedule = #lowlp.schedule<blocks_per_sm = 2, cluster = 4>} {
      %zero = arith.constant 0 : i64
      %bytes = arith.constant 512 : i64
      %own = simt.shared_memory 0 : !simt.ptr<shared>
      // CHECK: %[[OTHER:.*]] = nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
      %other = simt.map_shared %own, %block : !simt.ptr<shared> -> !simt.ptr<cluster>
      // CHECK: %[[TO:.*]] = llvm.getelementptr %[[OTHER]]
      // CHECK: %[[BARRIER:.*]] = llvm.getelementptr %[[OTHER]]
      // CHECK: llvm.inline_asm {{.*}}"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [$0], {$2, $3, $4, $5}, [$1];", "l,l,r,r,r,r,~{memory}" %[[TO]], %[[BARRIER]],
      simt.store_async %v, %other[%zero] arrives [%bytes] : vector<4xi32>, !simt.ptr<cluster>
      // CHECK: nvvm.cluster.arrive.relaxed {aligned}
      // CHECK-NEXT: nvvm.cluster.wait {aligned}
      simt.cluster_barrier
      gpu.return
    }
  }
}
