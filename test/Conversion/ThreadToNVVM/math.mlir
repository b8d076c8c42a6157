// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm | FileCheck %s

// Functions are instructions or intrinsics of LLVM, never calls of a library.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @functions
    // CHECK-NOT: llvm.call @
    // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"(%{{.*}}) : (f32) -> f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%{{.*}}) : (f32) -> f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%{{.*}}) : (f32) -> f32
    // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%{{.*}}) : (f32) -> f32
    // CHECK: llvm.intr.sqrt(%{{.*}}) : (f32) -> f32
    // CHECK: llvm.intr.fma
    // CHECK: llvm.intr.copysign
    // CHECK: llvm.intr.fabs
    // CHECK: llvm.intr.exp2(%{{.*}}) : (vector<2xf32>) -> vector<2xf32>
    gpu.func @functions(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %x = simt.load %p[%0] align 4 : !simt.ptr<global> -> f32
      %a = math.exp2 %x : f32
      %small = math.exp2 %a fastmath<afn> : f32
      %b = math.log2 %small : f32
      %c = math.rsqrt %b : f32
      %d = math.sqrt %c : f32
      %e = math.fma %d, %c, %b : f32
      %f = math.copysign %e, %x : f32
      %g = math.absf %f : f32
      %v = vector.broadcast %g : f32 to vector<2xf32>
      %w = math.exp2 %v : vector<2xf32>
      simt.store %w, %p[%0] align 8 : vector<2xf32>, !simt.ptr<global>
      gpu.return
    }

    // (x & mask) | bits of vectors of words is one instruction, whatever ptxas would make of constants.
    // CHECK-LABEL: llvm.func @masked
    // CHECK-COUNT-2: llvm.inline_asm asm_dialect = att "lop3.b32 $0, $1, $2, $3, 234;"
    // CHECK-NOT: llvm.or
    gpu.func @masked(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %mask = arith.constant dense<[15, 240]> : vector<2xi32>
      %bits = arith.constant dense<[256, 512]> : vector<2xi32>
      %x = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<2xi32>
      %a = arith.andi %x, %mask : vector<2xi32>
      %b = arith.ori %a, %bits : vector<2xi32>
      simt.store %b, %p[%0] align 8 : vector<2xi32>, !simt.ptr<global>
      gpu.return
    }
  }
}
