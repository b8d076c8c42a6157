// A workspace whose size divides by a negative number crashed the conversion to threads.
// RUN: not lowlp-opt %s --lowlp-to-thread 2>&1 | FileCheck %s
// CHECK: negative-divisor.mlir:7:3: error: 'lowlp.alloc_global' op extents must divide by positive numbers only

lowlp.kernel @workspace(%p: !lowlp.ptr<f32>, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  lowlp.alloc_global shape affine_map<(m) -> (m ceildiv -16)> zeroed : !lowlp.ptr<si32>
  lowlp.return
}
