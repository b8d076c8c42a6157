// RUN: not lowlp-opt %s --lowlp-emit-ptx=arch=sm_91 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not lowlp-opt %s --lowlp-emit-ptx=opt-level=4 2>&1 | FileCheck %s --check-prefix=LEVEL

// ARCH: error: unknown architecture 'sm_91'; known are sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a
// LEVEL: error: opt-level must be 0 to 3, but is 4
module {
}
