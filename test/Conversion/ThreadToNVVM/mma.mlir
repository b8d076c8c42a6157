// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @f16
    gpu.func @f16(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      // CHECK-DAG: %[[A:.*]] = llvm.load {{.*}} -> vector<8xf16>
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<8xf16>
      // CHECK-DAG: %[[B:.*]] = llvm.load {{.*}} -> vector<4xf16>
      %b = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<4xf16>
      %c = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      // CHECK: %[[A0:.*]] = llvm.shufflevector %[[A]], %[[A]] [0, 1] : vector<8xf16>
      // CHECK: %[[A1:.*]] = llvm.shufflevector %[[A]], %[[A]] [2, 3] : vector<8xf16>
      // CHECK: %[[A2:.*]] = llvm.shufflevector %[[A]], %[[A]] [4, 5] : vector<8xf16>
      // CHECK: %[[A3:.*]] = llvm.shufflevector %[[A]], %[[A]] [6, 7] : vector<8xf16>
      // CHECK: %[[B0:.*]] = llvm.shufflevector %[[B]], %[[B]] [0, 1] : vector<4xf16>
      // CHECK: %[[B1:.*]] = llvm.shufflevector %[[B]], %[[B]] [2, 3] : vector<4xf16>
      // CHECK: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]] B[%[[B0]], %[[B1]]]
      // CHECK-SAME: layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>
      // CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 16>
      // CHECK-SAME: (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
      %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
      simt.store %d, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // CHECK-LABEL: llvm.func @bf16
    gpu.func @bf16(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<8xbf16>
      %b = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<4xbf16>
      %c = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      // CHECK: llvm.bitcast %{{.*}} : vector<8xbf16> to vector<4xi32>
      // CHECK: llvm.bitcast %{{.*}} : vector<4xbf16> to vector<2xi32>
      // CHECK: nvvm.mma.sync
      // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>
      // CHECK-SAME: (i32, i32, f32)
      %d = simt.mma %a, %b, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      simt.store %d, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // An operand whose registers come from several loads of 16 bytes, for two products: ptxas would move them for each. Those
    // of an operand of one product are left alone.
    // CHECK-LABEL: llvm.func @gathered
    // CHECK-COUNT-8: llvm.inline_asm asm_dialect = att "fma.rn.bf16x2 $0, $1, $2, $3;"
    // CHECK: nvvm.mma.sync
    // CHECK-NOT: fma.rn
    gpu.func @gathered(%p: !simt.ptr<global>, %s: !simt.ptr<shared>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %16 = arith.constant 16 : i64
      %a = simt.load %s[%0] align 16 : !simt.ptr<shared> -> vector<8xbf16>
      %b = simt.load %s[%16] align 16 : !simt.ptr<shared> -> vector<8xbf16>
      %a0 = vector.extract %a[0] : bf16 from vector<8xbf16>
      %a1 = vector.extract %a[1] : bf16 from vector<8xbf16>
      %a2 = vector.extract %a[2] : bf16 from vector<8xbf16>
      %a3 = vector.extract %a[3] : bf16 from vector<8xbf16>
      %b0 = vector.extract %b[0] : bf16 from vector<8xbf16>
      %b1 = vector.extract %b[1] : bf16 from vector<8xbf16>
      %b2 = vector.extract %b[2] : bf16 from vector<8xbf16>
      %b3 = vector.extract %b[3] : bf16 from vector<8xbf16>
      %all = vector.from_elements %a0, %a1, %a2, %a3, %b0, %b1, %b2, %b3 : vector<8xbf16>
      %twice = vector.shuffle %all, %all [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xbf16>, vector<8xbf16>
      %once = vector.shuffle %all, %all [4, 5, 0, 1, 6, 7, 2, 3] : vector<8xbf16>, vector<8xbf16>
      %x = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<4xbf16>
      %c = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      %d = simt.mma %twice, %x, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      %f = simt.mma %twice, %x, %d : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      %g = simt.mma %once, %x, %f : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      simt.store %g, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // Those of loads of 8 bytes so are with two products.
    // CHECK-LABEL: llvm.func @gathered_from_narrow_loads
    // CHECK-NOT: fma.rn
    gpu.func @gathered_from_narrow_loads(%p: !simt.ptr<global>, %s: !simt.ptr<shared>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %8 = arith.constant 8 : i64
      %a = simt.load %s[%0] align 8 : !simt.ptr<shared> -> vector<4xbf16>
      %b = simt.load %s[%8] align 8 : !simt.ptr<shared> -> vector<4xbf16>
      %a0 = vector.extract %a[0] : bf16 from vector<4xbf16>
      %a1 = vector.extract %a[1] : bf16 from vector<4xbf16>
      %a2 = vector.extract %a[2] : bf16 from vector<4xbf16>
      %a3 = vector.extract %a[3] : bf16 from vector<4xbf16>
      %b0 = vector.extract %b[0] : bf16 from vector<4xbf16>
      %b1 = vector.extract %b[1] : bf16 from vector<4xbf16>
      %b2 = vector.extract %b[2] : bf16 from vector<4xbf16>
      %b3 = vector.extract %b[3] : bf16 from vector<4xbf16>
      %all = vector.from_elements %a0, %a1, %a2, %a3, %b0, %b1, %b2, %b3 : vector<8xbf16>
      %twice = vector.shuffle %all, %all [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xbf16>, vector<8xbf16>
      %once = vector.shuffle %all, %all [4, 5, 0, 1, 6, 7, 2, 3] : vector<8xbf16>, vector<8xbf16>
      %c = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      %d = simt.mma %twice, %a, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      %f = simt.mma %twice, %b, %d : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      %g = simt.mma %once, %b, %f : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      simt.store %g, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // An operand of several products that a loop leaves alone is put together before it; one of one product, in a
    // branch, is left alone.
    // CHECK-LABEL: llvm.func @gathered_before_a_loop
    // CHECK-COUNT-4: llvm.inline_asm asm_dialect = att "fma.rn.f16x2 $0, $1, $2, $3;"
    // CHECK: llvm.cond_br
    // CHECK: nvvm.mma.sync
    // CHECK-NOT: fma.rn
    gpu.func @gathered_before_a_loop(%p: !simt.ptr<global>, %n: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %first = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<8xf16>
      %x = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<4xf16>
      %c = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      %d = scf.for %i = %first to %n step %one iter_args(%sum = %c) -> vector<4xf32> : i32 {
        %moved = vector.shuffle %a, %a [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xf16>, vector<8xf16>
        %half = simt.mma %moved, %x, %sum : vector<8xf16>, vector<4xf16>, vector<4xf32>
        %next = simt.mma %moved, %x, %half : vector<8xf16>, vector<4xf16>, vector<4xf32>
        scf.yield %next : vector<4xf32>
      }
      simt.store %d, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // CHECK-LABEL: llvm.func @gathered_before_a_branch
    // CHECK-NOT: fma.rn
    gpu.func @gathered_before_a_branch(%p: !simt.ptr<global>, %c: i1) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<8xf16>
      %x = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<4xf16>
      %sum = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xf32>
      %moved = vector.shuffle %a, %a [0, 1, 4, 5, 2, 3, 6, 7] : vector<8xf16>, vector<8xf16>
      scf.if %c {
        %d = simt.mma %moved, %x, %sum : vector<8xf16>, vector<4xf16>, vector<4xf32>
        simt.store %d, %p[%0] align 16 : vector<4xf32>, !simt.ptr<global>
      }
      gpu.return
    }
  }
}
