// Ops between the functions of a gpu.module crashed LLVM's translation.
// RUN: not lowlp-opt %s --lowlp-to-ptx 2>&1 | FileCheck %s
// RUN: not lowlp-opt %s --lowlp-to-cpu 2>&1 | FileCheck %s --check-prefix=CPU
// CHECK: error: 'llvm.{{.*}}' op must lie in a function
// CPU: error: 'arith.constant' op is not a kernel; on the CPU a gpu.module holds kernels only

gpu.module @kernels {
  %zero = arith.constant 0 : i64
  %p = simt.shared_memory 32 : !simt.ptr<shared>
  %v = simt.load %p[%zero] align 4 : !simt.ptr<shared> -> i32
  simt.store %v, %p[%zero] align 4 : i32, !simt.ptr<shared>
}
