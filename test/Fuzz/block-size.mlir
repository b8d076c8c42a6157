// A block of -32 threads reached LLVM, which ended the process.
// RUN: not lowlp-opt %s --lowlp-to-ptx 2>&1 | FileCheck %s
// RUN: not lowlp-opt %s --lowlp-to-cpu 2>&1 | FileCheck %s
// CHECK: block-size.mlir:7:3: error: 'gpu.func' op kernel must have a known_block_size of 1 to 1024 threads

gpu.module @kernels {
  gpu.func @much() kernel attributes {known_block_size = array<i32: -32, 1, 1>} {
    gpu.return
  }
}
