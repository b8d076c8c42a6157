// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --canonicalize | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: llvm.func @words
  // CHECK: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
  // CHECK: %[[VOTES:.*]] = nvvm.vote.sync ballot %[[ALL]], %{{.*}} -> i32
  // CHECK: %[[LEFT:.*]] = llvm.intr.fshl(%[[HIGH:.*]], %[[VOTES]], %[[N:.*]]) : (i32, i32, i32) -> i32
  // CHECK: llvm.intr.fshr(%[[HIGH]], %[[LEFT]], %[[N]]) : (i32, i32, i32) -> i32
  gpu.func @words(%p: !simt.ptr<global>, %c: i1, %high: i32, %n: i32) kernel attributes {
      known_block_size = array<i32: 32, 1, 1>} {
    %zero = arith.constant 0 : i64
    %votes = simt.ballot %c
    %left = simt.funnel_shift %votes, %high, %n
    %right = simt.funnel_shift %left, %high, %n right
    simt.store %right, %p[%zero] align 4 : i32, !simt.ptr<global>
    gpu.return
  }

  // The first exit leaves a loop, the second ends the kernel; what follows it is gone.
  // CHECK-LABEL: llvm.func @exits
  // CHECK: llvm.cond_br %{{.*}}, ^[[LOOP:.*]], ^[[REST:.*]]
  // CHECK: ^[[LOOP]]:
  // CHECK: llvm.cond_br %{{.*}}, ^[[LEAVE:.*]], ^
  // CHECK: ^[[LEAVE]]:
  // CHECK-NEXT: llvm.return
  // CHECK: ^[[REST]]:
  // CHECK-NEXT: llvm.store
  // CHECK-NEXT: llvm.return
  // CHECK-NOT: llvm.store
  // CHECK: llvm.func @printed
  gpu.func @exits(%p: !simt.ptr<global>, %c: i1, %n: index) kernel attributes {
      known_block_size = array<i32: 32, 1, 1>} {
    %first = arith.constant 0 : index
    %one = arith.constant 1 : index
    %zero = arith.constant 0 : i64
    %word = arith.constant 7 : i32
    scf.for %i = %first to %n step %one {
      scf.if %c {
        simt.exit
      }
    }
    simt.store %word, %p[%zero] align 4 : i32, !simt.ptr<global>
    simt.exit
    simt.store %word, %p[%zero] align 4 : i32, !simt.ptr<global>
    gpu.return
  }

  // The memory for the values is taken once, not in each iteration.
  // CHECK: llvm.alloca
  // CHECK: llvm.br
  // CHECK-NOT: llvm.alloca
  // CHECK: llvm.call @vprintf
  gpu.func @printed(%n: index, %f: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %first = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %first to %n step %one {
      gpu.printf "%lld %g\n", %i, %f : index, f32
    }
    gpu.return
  }
}
