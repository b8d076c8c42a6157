// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_80 | FileCheck %s --check-prefixes=CHECK,SHIFTS
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_90a | FileCheck %s --check-prefixes=CHECK,CONVERTS

// 8-bit floats are converted where the GPU can, and else put where a half has their bits.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @words
    // CHECK: llvm.inline_asm {{.*}}"prmt.b32 $0, $1, $2, $3;", "=r,r,r,r"
    // CONVERTS: %[[PAIR:.*]] = llvm.extractelement %{{.*}} : vector<2xi16>
    // CONVERTS: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%[[PAIR]]) : (i16) -> vector<2xf16>
    // CONVERTS-NOT: llvm.fmul
    // SHIFTS: llvm.inline_asm {{.*}}"prmt.b32 $0, $1, $2, 13348;"
    // SHIFTS: llvm.lshr
    // SHIFTS: llvm.fmul %{{.*}} : vector<2xf16>
    gpu.func @words(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %a = simt.load %p[%0] align 4 : !simt.ptr<global> -> i32
      %b = simt.select_bytes %a, %a by %a
      %h = simt.widen_floats %b half 1 : vector<2xf16>
      simt.store %h, %p[%0] align 4 : vector<2xf16>, !simt.ptr<global>
      gpu.return
    }
  }
}
