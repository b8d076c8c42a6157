// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_89 | FileCheck %s --check-prefix=NATIVE
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_90a | FileCheck %s --check-prefix=HALVES

// Where mma of 8-bit floats is emulated, two products of halves, the second of
// which adds to what the first came to.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // NATIVE-LABEL: llvm.func @floats
    // NATIVE: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"
    // NATIVE-SAME: (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    // NATIVE-NOT: nvvm.mma.sync
    // HALVES-LABEL: llvm.func @floats
    // HALVES-COUNT-4: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%{{.*}}) : (i16) -> vector<2xf16>
    // HALVES-COUNT-2: llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"(%{{.*}}) : (i16) -> vector<2xf16>
    // HALVES: %[[FIRST:[0-9]+]] = nvvm.mma.sync
    // HALVES-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 16>
    // HALVES: %[[SUM:[0-9]+]] = llvm.extractvalue %[[FIRST]][0]
    // HALVES: nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[%[[SUM]],
    // HALVES-NOT: nvvm.mma.sync
    gpu.func @floats(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xi32>
      %b = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<2xi32>
      %c = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      %d = simt.mma %a as f8E4M3FN, %b as f8E5M2, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
      simt.store %d, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }
  }
}
