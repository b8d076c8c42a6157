// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Only the order of registers changes: one shuffle of a vector within the thread, if any.
// CHECK-LABEL: gpu.func @registers
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: arith.select
// CHECK: gpu.return
!rows = !lowlp.tile<16x8xf32, spatial(8, 4).local(2, 2)>
!columns = !lowlp.tile<16x8xf32, spatial(8, 4).column_local(2, 2)>
lowlp.kernel @registers(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<16x8xf32> -> !rows
  %y = lowlp.convert_layout %x : !rows -> !columns
  lowlp.store_global %y, %v[%c0, %c0] : !columns, !lowlp.global<16x8xf32>
  lowlp.return
}

// Every thread holds both elements; which of them it keeps is bit t of a word.
// CHECK-LABEL: gpu.func @choices
// CHECK-DAG: %[[UPPER:.*]] = arith.constant -65536 : i32
// CHECK-NOT: gpu.shuffle
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[UPPER]], %{{.*}} : i32
// CHECK: %[[BIT:.*]] = arith.trunci %[[SHIFTED]] : i32 to i1
// CHECK: arith.select %[[BIT]]
// CHECK: gpu.return
!both = !lowlp.tile<2xf32, local(2).reduce(spatial(32), dims=[0])>
!one = !lowlp.tile<2xf32, spatial(2).reduce(spatial(16), dims=[0])>
lowlp.kernel @choices(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [2] : !lowlp.ptr<f32> -> !lowlp.global<2xf32>
  %x = lowlp.load_global %v[%c0] : !lowlp.global<2xf32> -> !both
  %y = lowlp.convert_layout %x : !both -> !one
  lowlp.store_global %y, %v[%c0] : !one, !lowlp.global<2xf32>
  lowlp.return
}

// Lanes t and t xor 16 exchange one of their two values; 4 codes of 8 bits travel as one word.
// CHECK-LABEL: gpu.func @exchange
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
// CHECK: gpu.shuffle xor %{{.*}}, %[[C16]], %[[C32]] : i32
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
!outer = !lowlp.tile<4x64xsi8, local(2, 1).spatial(2, 16).local(1, 4)>
!inner = !lowlp.tile<4x64xsi8, spatial(2, 1).local(2, 1).spatial(1, 16).local(1, 4)>
lowlp.kernel @exchange(%p: !lowlp.ptr<si8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 64] : !lowlp.ptr<si8> -> !lowlp.global<4x64xsi8>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<4x64xsi8> -> !outer
  %y = lowlp.convert_layout %x : !outer -> !inner
  lowlp.store_global %y, %v[%c0, %c0] : !inner, !lowlp.global<4x64xsi8>
  lowlp.return
}

// Lanes change places: each of the five bits of the lane to read is a bit of a word.
// CHECK-LABEL: gpu.func @places
// CHECK: gpu.shuffle idx
// CHECK-NOT: gpu.shuffle
// CHECK: gpu.return
lowlp.kernel @places(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [8, 4] : !lowlp.ptr<f32> -> !lowlp.global<8x4xf32>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<8x4xf32> -> !lowlp.tile<8x4xf32, spatial(8, 4)>
  %y = lowlp.convert_layout %x : !lowlp.tile<8x4xf32, spatial(8, 4)> -> !lowlp.tile<8x4xf32, column_spatial(8, 4)>
  lowlp.store_global %y, %v[%c0, %c0] : !lowlp.tile<8x4xf32, column_spatial(8, 4)>, !lowlp.global<8x4xf32>
  lowlp.return
}

// Four lanes have a row each of what all of them are to have: each row comes from lane (t & 28) | row, to all lanes, and nothing is
// chosen.
// CHECK-LABEL: gpu.func @parts
// CHECK-DAG: %[[FOURS:.*]] = arith.constant 28 : i32
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
// CHECK: %[[OWN:.*]] = arith.andi %{{.*}}, %[[FOURS]] : i32
// CHECK-COUNT-4: gpu.shuffle idx %[[HELD:.*]], %{{.*}}, %[[C32]] : {{f32|i32}}
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: arith.select
// CHECK: gpu.return
!dealt = !lowlp.tile<32xf32, column_spatial(4, 8).reshape(32)>
!all = !lowlp.tile<32xf32, local(4).spatial(8).reduce(spatial(1, 4), dims=[1])>
lowlp.kernel @parts(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %x = lowlp.load_global %v[%c0] : !lowlp.global<32xf32> -> !dealt
  %y = lowlp.convert_layout %x : !dealt -> !all
  lowlp.store_global %y, %v[%c0] : !all, !lowlp.global<32xf32>
  lowlp.return
}
