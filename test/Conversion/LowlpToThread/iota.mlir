// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Columns: lane % 4 of the thread, times 2, and 0 or 1 of the local index.
// CHECK-LABEL: gpu.func @columns
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %[[C4]] : index
// CHECK: %[[COLUMN:.*]] = arith.muli %[[LANE]], %[[C2]] : index
// CHECK: %[[WORD:.*]] = arith.index_cast %[[COLUMN]] : index to i32
// CHECK: %[[FIRST:.*]] = arith.sitofp %[[WORD]] : i32 to f32
// CHECK: arith.addf %[[FIRST]], %[[ONE]] : f32
!tile = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @columns(%p: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %j = lowlp.iota dim 1 : !tile
  lowlp.store_global %j, %v[%c0, %c0] : !tile, !lowlp.global<16x8xf32>
  lowlp.return
}
