// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: llvm.mlir.global external @lowlp_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64}
    // CHECK-LABEL: llvm.func @all(
    // CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
    // CHECK-SAME: nvvm.maxnreg = 168 : i32
    gpu.func @all(%g: !simt.ptr<global>, %i: i64, %parity: i32, %map: !simt.tensor_map) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (1)>, lowlp.launch_registers = 168 : i64, lowlp.tensor_maps = [{}]} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init.shared::cta.b64 [$0], $1;", "l,r,~{memory}"
      simt.mbarrier_init %s[%i] arrivals 128 : !simt.ptr<shared>
      // CHECK: "fence.mbarrier_init.release.cluster;", "~{memory}"
      simt.fence_mbarrier_init
      // CHECK: "mbarrier.arrive.shared::cta.b64 _, [$0];"
      simt.mbarrier_arrive %s[%i] : !simt.ptr<shared>
      // CHECK: "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"
      simt.mbarrier_arrive %s[%i] expects 4096 : !simt.ptr<shared>
      // CHECK: mbarrier.try_wait.parity.shared::cta.b64 complete, [$0], $1;
      simt.mbarrier_wait %s[%i] parity %parity : !simt.ptr<shared>
      // CHECK: "fence.proxy.async.shared::cta;"
      simt.fence_async
      // CHECK: "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "l,l,r,l,~{memory}"
      simt.copy_bulk %g[%i] to %s[%i] bytes 4096 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // CHECK: "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;"
      simt.copy_bulk_to_global %s[%i] to %g[%i] bytes 16 : !simt.ptr<shared> to !simt.ptr<global>
      // CHECK: "cp.async.bulk.commit_group;"
      simt.copy_bulk_commit
      // CHECK: "cp.async.bulk.wait_group 0;"
      simt.copy_bulk_wait 0
      // CHECK: "cp.async.bulk.wait_group.read 1;"
      simt.copy_bulk_wait 1 read
      // CHECK: "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];", "l,l,r,r,l,~{memory}"
      simt.copy_tensor %map of %g extents [%i, %i] strides [%i] at [%i, %i] to %s[%i] box [16, 64]
        element_bytes 2 swizzle 128 signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // By one lane of the warp, when all are there and have what they read.
      // CHECK: fence.acq_rel.cta;
      // CHECK-SAME: bar.warp.sync 0xffffffff;
      // CHECK-SAME: elect.sync _|arrives, 0xffffffff;
      // CHECK-SAME: @arrives mbarrier.arrive.shared::cta.b64 _, [$0];
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      // No lane has loads in flight.
      // CHECK-NOT: fence.acq_rel.cta
      // CHECK: bar.warp.sync 0xffffffff;
      // CHECK-SAME: elect.sync _|arrives, 0xffffffff;
      simt.mbarrier_arrive %s[%i] by_warp loads_ended : !simt.ptr<shared>
      // By a lane for each block of a cluster.
      // CHECK: fence.acq_rel.cta;
      // CHECK-SAME: setp.lt.u32 arrives, lane, 2;
      // CHECK-SAME: @arrives mapa.shared::cluster.u64 there, $0, lane;
      // CHECK-SAME: @arrives mbarrier.arrive.shared::cluster.b64 _, [there];
      simt.mbarrier_arrive %s[%i] by_warp {lowlp.multicast = #lowlp.multicast<2>} : !simt.ptr<shared>
      // CHECK: llvm.mlir.constant(3 : i16)
      // CHECK: complete_tx::bytes.multicast::cluster [$0], [$1, {$2}], [$3], $4;", "l,l,r,l,h,~{memory}"
      simt.copy_tensor %map of %g extents [%i] strides [] at [%i] to %s[%i] box [64] element_bytes 2 swizzle 0
        signals %s[%i] {lowlp.multicast = #lowlp.multicast<2>} : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;"
      simt.mbarrier_init %s[%i] arrivals 4 by_warps : !simt.ptr<shared>
      // CHECK: "griddepcontrol.wait;"
      simt.wait_for_dependencies
      // CHECK: "griddepcontrol.launch_dependents;"
      simt.launch_dependents
      // CHECK: "barrier.cta.arrive 1, {{.*}};"
      // CHECK: %[[NUMBER:.*]] = llvm.mlir.constant(1 : i32)
      // CHECK: %[[THREADS:.*]] = llvm.mlir.constant(256 : i32)
      // CHECK: nvvm.barrier id = %[[NUMBER]] number_of_threads = %[[THREADS]]
      simt.leave_barriers threads 96
      simt.barrier threads 256
      // CHECK: mov.u32 number, %tid.x;
      // CHECK-SAME: div.u32 number, number, 128;
      // CHECK-SAME: add.u32 number, number, 8;
      // CHECK-SAME: bar.sync number, 128;
      simt.warpgroup_barrier
      // CHECK: nvvm.setmaxregister decrease 40
      simt.set_registers 40
      // CHECK: nvvm.setmaxregister increase 232
      simt.set_registers 232 takes
      gpu.return
    }
  }
}
