// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm | FileCheck %s

// mma of packed elements, ldmatrix and stmatrix.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @packed
    gpu.func @packed(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %0 = arith.constant 0 : i64
      %a = simt.load %p[%0] align 16 : !simt.ptr<global> -> vector<4xi32>
      %b = simt.load %p[%0] align 8 : !simt.ptr<global> -> vector<2xi32>
      // CHECK: nvvm.mma.sync
      // CHECK-SAME: intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>
      // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<u8>
      // CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 32>
      // CHECK-SAME: (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
      %c = simt.mma %a as si8, %b as ui8, %a : vector<4xi32>, vector<2xi32>, vector<4xi32>
      // CHECK: nvvm.mma.sync
      // CHECK-SAME: b1Op = #nvvm.mma_b1op<and_popc>
      // CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 256>
      %d = simt.mma %a as ui1, %b as ui1, %c : vector<4xi32>, vector<2xi32>, vector<4xi32>
      // CHECK: nvvm.mma.sync
      // CHECK-SAME: b1Op = #nvvm.mma_b1op<and_popc>
      // CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 128>
      // CHECK-SAME: (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
      %h = simt.load %p[%0] align 4 : !simt.ptr<global> -> vector<1xi32>
      %k = simt.mma %b as ui1, %h as ui1, %d : vector<2xi32>, vector<1xi32>, vector<4xi32>
      simt.store %k, %p[%0] align 16 : vector<4xi32>, !simt.ptr<global>
      simt.store %d, %p[%0] align 16 : vector<4xi32>, !simt.ptr<global>
      gpu.return
    }

    // CHECK-LABEL: llvm.func @matrices
    gpu.func @matrices(%offset: i64) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %p = simt.shared_memory 0 : !simt.ptr<shared>
      // CHECK: nvvm.ldmatrix %{{[0-9]+}} {
      // CHECK-SAME: layout = #nvvm.mma_layout<row>, num = 4 : i32
      // CHECK-SAME: (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %v = simt.ldmatrix %p[%offset] : !simt.ptr<shared> -> vector<4xi32>
      // CHECK: nvvm.ldmatrix
      // CHECK-SAME: layout = #nvvm.mma_layout<col>, num = 2 : i32
      %w = simt.ldmatrix %p[%offset] trans : !simt.ptr<shared> -> vector<2xi32>
      // CHECK: nvvm.ldmatrix
      // CHECK-SAME: (!llvm.ptr<3>) -> i32
      %x = simt.ldmatrix %p[%offset] : !simt.ptr<shared> -> vector<1xi32>
      // CHECK: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {
      // CHECK-SAME: layout = #nvvm.mma_layout<row>
      simt.stmatrix %v, %p[%offset] : vector<4xi32>, !simt.ptr<shared>
      // CHECK: nvvm.stmatrix
      // CHECK-SAME: layout = #nvvm.mma_layout<col>
      simt.stmatrix %w, %p[%offset] trans : vector<2xi32>, !simt.ptr<shared>
      simt.stmatrix %x, %p[%offset] : vector<1xi32>, !simt.ptr<shared>
      gpu.return
    }
  }
}
