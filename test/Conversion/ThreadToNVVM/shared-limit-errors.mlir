// RUN: not lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_86 2>&1 | FileCheck %s
// RUN: not lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_120a 2>&1 | FileCheck %s --check-prefix=LAST
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_80 -o /dev/null

gpu.module @kernels {
  // 100 KiB: more than a block of sm_86 may have, and less than one of sm_80.
  // CHECK: error: 'gpu.func' op takes 102400 bytes of shared memory, but a block of sm_86 may have at most 101376
  // LAST: error: 'gpu.func' op takes 102400 bytes of shared memory, but a block of sm_120a may have at most 101376
  gpu.func @much() kernel attributes {known_block_size = array<i32: 32, 1, 1>, lowlp.shared_bytes = 102400 : i64} {
    gpu.return
  }
}
