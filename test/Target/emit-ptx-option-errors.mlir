// RUN: not lowlp-opt %s --lowlp-emit-ptx=arch=sm_91 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not lowlp-opt %s --lowlp-emit-ptx=opt-level=4 2>&1 | FileCheck %s --check-prefix=LEVEL

// At the first op of the program, and without its text.
// ARCH: emit-ptx-option-errors.mlir:[[#@LINE+4]]:1: error: unknown architecture 'sm_91'; known are sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103a, sm_120, sm_120a, sm_121a
// ARCH-NOT: see current operation
// LEVEL: emit-ptx-option-errors.mlir:[[#@LINE+2]]:1: error: opt-level must be 0 to 3, but is 4
// LEVEL-NOT: see current operation
gpu.module @kernels {
}
