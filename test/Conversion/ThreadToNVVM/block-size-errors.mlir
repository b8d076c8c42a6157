// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --split-input-file --verify-diagnostics
// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu --split-input-file --verify-diagnostics

gpu.module @kernels {
  // expected-error @below {{kernel must have a known_block_size of 1 to 1024 threads, but has -32, 1, 1}}
  gpu.func @negative() kernel attributes {known_block_size = array<i32: -32, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{kernel must have a known_block_size of 1 to 1024 threads, but has 32, 0, 1}}
  gpu.func @none() kernel attributes {known_block_size = array<i32: 32, 0, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{kernel must have a known_block_size of 1 to 1024 threads, but has 2147483647, 2147483647, 2147483647}}
  gpu.func @many() kernel attributes {known_block_size = array<i32: 2147483647, 2147483647, 2147483647>} {
    gpu.return
  }
}
