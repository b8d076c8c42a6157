// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --lowlp-emit-ptx | FileCheck %s
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_80 --lowlp-emit-ptx="arch=sm_80 opt-level=0" | FileCheck %s --check-prefix=SM80
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --lowlp-emit-ptx=seconds=true | FileCheck %s --check-prefix=SECONDS

// SECONDS: gpu.binary {{.*}}lowlp.seconds = [{{[-.eE0-9]+}}, {{[-.eE0-9]+}}, {{[-.eE0-9]+}}]

// The text stands in one string, whose line ends are printed as \0A.
// SM80: #nvvm.target<O = 0, chip = "sm_80">
// SM80-SAME: .target sm_80\0A

// CHECK: lowlp.kernels = {work
// CHECK: gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a">, assembly = "
// CHECK-SAME: .version 8.6\0A.target sm_90a\0A
// CHECK-SAME: .visible .entry work(
// CHECK-SAME: .reqntid 32, 1, 1
// One access each: 16 bytes of i32 and of f16.
// CHECK-SAME: ld.global.v4.b32
// CHECK-SAME: ld.global.v4.b32
// CHECK-SAME: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// A product and a sum are two roundings, which ptxas does not fuse.
// CHECK-SAME: mul.rn.f32
// CHECK-SAME: add.rn.f32
// CHECK-SAME: st.global.v4.b32
// CHECK-SAME: .global.or.b32
// CHECK-NOT: fma
// CHECK-NOT: gpu.module
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @work(%p: !simt.ptr<global>, %q: !simt.ptr<global>) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %w = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xi32>
      %a = simt.load %q[%0] align 16 : !simt.ptr<global> -> vector<8xf16>
      %b = vector.shuffle %a, %a [0, 2, 4, 6] : vector<8xf16>, vector<8xf16>
      %c = vector.bitcast %w : vector<4xi32> to vector<4xf32>
      %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
      %product = arith.mulf %d, %c : vector<4xf32>
      %sum = arith.addf %product, %c : vector<4xf32>
      simt.store %sum, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      %bits = vector.extract %w[1] : i32 from vector<4xi32>
      %old = simt.atomic_rmw or %bits, %q[%0] : i32, !simt.ptr<global>
      gpu.return
    }
  }
}
