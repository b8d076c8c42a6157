// Vectors of very many elements were compiled for minutes, or until memory ran out.
// RUN: not lowlp-opt %s --lowlp-convert-thread-to-nvvm 2>&1 | FileCheck %s
// RUN: not lowlp-opt %s --lowlp-convert-thread-to-cpu 2>&1 | FileCheck %s
// CHECK: huge-vector.mlir:10:10: error: 'vector.broadcast' op gives each thread a vector of 2147483648 elements; at most 8192 are allowed

gpu.module @kernels {
  gpu.func @functions(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : i64
    %x = simt.load %p[%c0] align 4 : !simt.ptr<global> -> f32
    %y = vector.broadcast %x : f32 to vector<2147483648xf32>
    %z = math.exp2 %y : vector<2147483648xf32>
    simt.store %z, %p[%c0] align 4 : vector<2147483648xf32>, !simt.ptr<global>
    gpu.return
  }
}
