// RUN: lowlp-opt --lowlp-convert-thread-to-cpu %s | FileCheck %s

gpu.module @kernels {
  // Both loops ask where they begin again, and what comes once does not.
  // CHECK-LABEL: llvm.func @nested(
  // CHECK-COUNT-2: llvm.call @lowlpCpuPoll(%arg0) : (!llvm.ptr) -> ()
  // CHECK-NOT: lowlpCpuPoll
  // CHECK: llvm.return
  gpu.func @nested(%n: index, %p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %begin = arith.constant 0 : i64
    %value = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one {
      scf.for %j = %zero to %i step %one {
        simt.store %value, %p[%begin] align 4 : i32, <global>
      }
    }
    %isOne = arith.cmpi eq, %n, %one : index
    scf.if %isOne {
      simt.store %value, %p[%begin] align 4 : i32, <global>
    }
    gpu.return
  }
}
