// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu --canonicalize | FileCheck %s

gpu.module @kernels {
  // Five exchanges gather the bits of 32 lanes.
  // CHECK-LABEL: llvm.func @words
  // CHECK: %[[BIT:.*]] = llvm.zext %{{.*}} : i1 to i32
  // CHECK: llvm.shl %[[BIT]], %{{.*}} : i32
  // CHECK-COUNT-5: llvm.call @lowlpCpuShuffle
  // CHECK: llvm.intr.fshl
  // CHECK: llvm.intr.fshr
  gpu.func @words(%p: !simt.ptr<global>, %c: i1, %high: i32, %n: i32) kernel attributes {
      known_block_size = array<i32: 32, 1, 1>} {
    %zero = arith.constant 0 : i64
    %votes = simt.ballot %c
    %left = simt.funnel_shift %votes, %high, %n
    %right = simt.funnel_shift %left, %high, %n right
    simt.store %right, %p[%zero] align 4 : i32, !simt.ptr<global>
    gpu.return
  }

  // CHECK-LABEL: llvm.func @exits
  // CHECK: llvm.cond_br
  // CHECK: llvm.return
  // CHECK: llvm.call @lowlpCpuCheckAccess
  // CHECK: llvm.return
  gpu.func @exits(%p: !simt.ptr<global>, %c: i1) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %zero = arith.constant 0 : i64
    %word = arith.constant 7 : i32
    scf.if %c {
      simt.exit
    }
    simt.store %word, %p[%zero] align 4 : i32, !simt.ptr<global>
    gpu.return
  }

  // Values pass as 8 bytes each.
  // CHECK-LABEL: llvm.func @printed
  // CHECK: %[[VALUES:.*]] = llvm.alloca %{{.*}} x i64
  // CHECK: llvm.store %{{.*}}, %[[VALUES]] : i64
  // CHECK: %[[DOUBLE:.*]] = llvm.fpext %{{.*}} : f32 to f64
  // CHECK: llvm.store %[[DOUBLE]]
  // CHECK: llvm.call @lowlpCpuPrint(%{{.*}}, %{{.*}}, %[[VALUES]])
  gpu.func @printed(%n: index, %f: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.printf "%lld %g\n", %n, %f : index, f32
    gpu.return
  }
}
