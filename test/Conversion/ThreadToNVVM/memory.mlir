// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --split-input-file | FileCheck %s

// CHECK: module attributes {gpu.container_module, lowlp.kernels = {copy = {block_size = array<i32: 32, 1, 1>, grid = affine_map{{.*}}, parameters = [{name = "p"}, {name = "q"}]}}}
// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_90a">]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @copy(
    // CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[Q:.*]]: !llvm.ptr<3>)
    // CHECK-SAME: attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>}
    gpu.func @copy(%p: !simt.ptr<global>, %q: !simt.ptr<shared>) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (1)>, lowlp.parameters = [{name = "p"}, {name = "q"}]} {
      // CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(32 : i64)
      %offset = arith.constant 32 : i64
      // CHECK: %[[FROM:.*]] = llvm.getelementptr %[[P]][%[[OFFSET]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      // CHECK: %[[V:.*]] = llvm.load %[[FROM]] {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %v = simt.load %p[%offset] align 16 : !simt.ptr<global> -> vector<4xi32>
      // CHECK: %[[TO:.*]] = llvm.getelementptr %[[Q]][%[[OFFSET]]] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
      // CHECK: llvm.store %[[V]], %[[TO]] {alignment = 8 : i64} : vector<4xi32>, !llvm.ptr<3>
      simt.store %v, %q[%offset] align 8 : vector<4xi32>, !simt.ptr<shared>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @atomics
    gpu.func @atomics(%p: !simt.ptr<global>, %v: i32, %c: i1) kernel attributes {
        known_block_size = array<i32: 64, 1, 1>} {
      %zero = arith.constant 0 : i64
      // CHECK: llvm.atomicrmw _and %{{.*}}, %{{.*}} syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1>, i32
      %0 = simt.atomic_rmw and %v, %p[%zero] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw _or
      %1 = simt.atomic_rmw or %0, %p[%zero] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw add
      %2 = simt.atomic_rmw add %1, %p[%zero] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw xchg
      %3 = simt.atomic_rmw exchange %2, %p[%zero] : i32, !simt.ptr<global>
      // CHECK-NOT: simt.assert
      simt.assert %c, "costs nothing here"
      // CHECK: llvm.return
      gpu.return
    }
  }
}

// -----

// Structured control flow becomes blocks, and what both targets share is lowered.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @sum
    gpu.func @sum(%p: !simt.ptr<global>, %n: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      // CHECK: nvvm.read.ptx.sreg.tid.x range <i32, 0, 32>
      %t = gpu.thread_id x
      // CHECK: nvvm.read.ptx.sreg.ctaid.y
      %b = gpu.block_id y
      %end = arith.index_cast %n : i32 to index
      %one = arith.constant 1 : index
      %zero = arith.constant dense<0.0> : vector<2xf32>
      // CHECK: llvm.br ^[[HEAD:.*]](%{{.*}}, %{{.*}} : i64, vector<2xf32>)
      // CHECK: llvm.cond_br
      %sum = scf.for %i = %t to %end step %one iter_args(%sum = %zero) -> (vector<2xf32>) {
        %offset = arith.index_cast %i : index to i64
        %v = simt.load %p[%offset] align 4 : !simt.ptr<global> -> f32
        // CHECK: llvm.insertelement
        // CHECK: llvm.shufflevector
        %w = vector.broadcast %v : f32 to vector<2xf32>
        // CHECK: llvm.fadd
        %next = arith.addf %sum, %w : vector<2xf32>
        scf.yield %next : vector<2xf32>
      }
      // CHECK: nvvm.barrier
      gpu.barrier
      %offset = arith.index_cast %b : index to i64
      simt.store %sum, %p[%offset] align 8 : vector<2xf32>, !simt.ptr<global>
      gpu.return
    }
  }
}

// -----

// CHECK: lowlp.kernels = {shared = {block_size = array<i32: 32, 1, 1>, shared_bytes = 64 : i64}}
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK: llvm.mlir.global external @lowlp_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    // CHECK-NOT: llvm.mlir.global
    // CHECK-LABEL: llvm.func @shared
    gpu.func @shared() kernel attributes {known_block_size = array<i32: 32, 1, 1>, lowlp.shared_bytes = 64 : i64} {
      // CHECK: %[[BEGIN:.*]] = llvm.mlir.addressof @lowlp_shared_memory : !llvm.ptr<3>
      // CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(32 : i64)
      // CHECK: llvm.getelementptr %[[BEGIN]][%[[OFFSET]]] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
      %p = simt.shared_memory 32 : !simt.ptr<shared>
      %q = simt.shared_memory 0 : !simt.ptr<shared>
      %zero = arith.constant 0 : i64
      %v = simt.load %p[%zero] align 4 : !simt.ptr<shared> -> i32
      // CHECK: nvvm.barrier
      gpu.barrier
      simt.store %v, %q[%zero] align 4 : i32, !simt.ptr<shared>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @copies(
    gpu.func @copies(%g: !simt.ptr<global>, %s: !simt.ptr<shared>) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>} {
      %zero = arith.constant 0 : i64
      // CHECK: %[[FROM:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      // CHECK: %[[TO:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
      // CHECK: nvvm.cp.async.shared.global %[[TO]], %[[FROM]], 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
      simt.copy_async %g[%zero] to %s[%zero] bytes 16 : !simt.ptr<global> to !simt.ptr<shared>
      // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = ca
      simt.copy_async %g[%zero] to %s[%zero] bytes 4 : !simt.ptr<global> to !simt.ptr<shared>
      // CHECK: nvvm.cp.async.commit.group
      simt.copy_async_commit
      // CHECK: nvvm.cp.async.wait.group 1
      simt.copy_async_wait 1
      gpu.return
    }
  }
}
