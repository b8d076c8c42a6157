// RUN: lowlp-opt %s --lowlp-convert-to-thread | FileCheck %s

// How many elements one simt.load moves, and each reason why it moves fewer. A thread holds 8 neighbours of a row.
// Canonicalization would drop the loads, whose values are not used.

!t = !lowlp.tile<32x8xf16, spatial(32, 1).local(1, 8)>

// CHECK-LABEL: gpu.func @all_promises
// CHECK-COUNT-1: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK-NOT: simt.load
lowlp.kernel @all_promises(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32,
                           %ld: i64 {lowlp.divisible_by = 8 : i64})
    attributes {grid = affine_map<(m, ld) -> (m)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %c8 = arith.constant 8 : index
  %rows = arith.index_cast %m : i32 to index
  %stride = arith.index_cast %ld : i64 to index
  %offset = arith.muli %b, %c8 : index
  %v = lowlp.view_global %p shape [%rows, 64] strides [%stride, 1] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %t = lowlp.load_global %v[%b, %offset] : !lowlp.global<?x64xf16> -> !t
  lowlp.return
}

// Aligned to 4 bytes: 2 elements.
// CHECK-LABEL: gpu.func @base_alignment
// CHECK-COUNT-4: simt.load %{{.*}} align 4 : <global> -> vector<2xf16>
// CHECK-NOT: simt.load
lowlp.kernel @base_alignment(%p: !lowlp.ptr<f16> {lowlp.align = 4 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 64] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x64xf16> -> !t
  lowlp.return
}

// No promise: the elements' own alignment.
// CHECK-LABEL: gpu.func @no_alignment
// CHECK-COUNT-8: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK-NOT: simt.load
lowlp.kernel @no_alignment(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 64] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x64xf16> -> !t
  lowlp.return
}

// A row may begin anywhere.
// CHECK-LABEL: gpu.func @dynamic_stride
// CHECK-COUNT-8: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK-NOT: simt.load
lowlp.kernel @dynamic_stride(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %ld: i64)
    attributes {grid = affine_map<(ld) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %stride = arith.index_cast %ld : i64 to index
  %v = lowlp.view_global %p shape [32, 64] strides [%stride, 1] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x64xf16> -> !t
  lowlp.return
}

// Row-major: what divides the extents to the right divides a stride.
// CHECK-LABEL: gpu.func @row_major
// CHECK-COUNT-1: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK-COUNT-8: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK-NOT: simt.load
lowlp.kernel @row_major(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32, %k: i32 {lowlp.divisible_by = 8 : i64})
    attributes {grid = affine_map<(m, k) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %v = lowlp.view_global %p shape [2, %rows, %columns] : !lowlp.ptr<f16> -> !lowlp.global<2x?x?xf16>
  %t = lowlp.load_global %v[%rows, %c0, %c0] : !lowlp.global<2x?x?xf16> -> !t
  %w = lowlp.view_global %p shape [%columns, %rows] : !lowlp.ptr<f16> -> !lowlp.global<?x?xf16>
  %u = lowlp.load_global %w[%c0, %c0] : !lowlp.global<?x?xf16> -> !t
  lowlp.return
}

// Neighbours along the last dimension are no neighbours in memory.
// CHECK-LABEL: gpu.func @last_stride
// CHECK-COUNT-8: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK-NOT: simt.load
lowlp.kernel @last_stride(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 64] strides [8, 32] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x64xf16> -> !t
  lowlp.return
}

// CHECK-LABEL: gpu.func @offset_by_4
// CHECK-COUNT-2: simt.load %{{.*}} align 8 : <global> -> vector<4xf16>
// CHECK-NOT: simt.load
lowlp.kernel @offset_by_4(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %c0 = arith.constant 0 : index
  %c12 = arith.constant 12 : index
  %offset = arith.muli %b, %c12 : index
  %v = lowlp.view_global %p shape [32, 64] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  %t = lowlp.load_global %v[%c0, %offset] : !lowlp.global<32x64xf16> -> !t
  lowlp.return
}

// A leading dimension counts too: its stride times its offset is a multiple of 2 only.
// CHECK-LABEL: gpu.func @leading_stride
// CHECK-COUNT-4: simt.load %{{.*}} align 4 : <global> -> vector<2xf16>
// CHECK-NOT: simt.load
lowlp.kernel @leading_stride(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [3, 32, 64] strides [2, 64, 1] : !lowlp.ptr<f16> -> !lowlp.global<3x32x64xf16>
  %t = lowlp.load_global %v[%b, %c0, %c0] : !lowlp.global<3x32x64xf16> -> !t
  lowlp.return
}

// The view ends within a group, so its elements must be tested one by one...
// CHECK-LABEL: gpu.func @extent
// CHECK-COUNT-8: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK-NOT: simt.load
lowlp.kernel @extent(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 63] strides [64, 1] : !lowlp.ptr<f16> -> !lowlp.global<32x63xf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x63xf16> -> !t
  lowlp.return
}

// ... unless the access is in_bounds.
// CHECK-LABEL: gpu.func @in_bounds
// CHECK-COUNT-1: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK-NOT: simt.load
lowlp.kernel @in_bounds(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32, 63] strides [64, 1] : !lowlp.ptr<f16> -> !lowlp.global<32x63xf16>
  %t = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<32x63xf16> -> !t
  lowlp.return
}

// The layout gives runs of 2.
// CHECK-LABEL: gpu.func @layout
// CHECK-COUNT-4: simt.load %{{.*}} align 4 : <global> -> vector<2xbf16>
// CHECK-NOT: simt.load
lowlp.kernel @layout(%p: !lowlp.ptr<bf16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [16, 16] : !lowlp.ptr<bf16> -> !lowlp.global<16x16xbf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<16x16xbf16>
    -> !lowlp.tile<16x16xbf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
  lowlp.return
}

// 16 bytes are the most that one load moves.
// CHECK-LABEL: gpu.func @longest
// CHECK-COUNT-2: simt.load %{{.*}} align 16 : <global> -> vector<4xf32>
// CHECK-NOT: simt.load
lowlp.kernel @longest(%p: !lowlp.ptr<f32> {lowlp.align = 256 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256] : !lowlp.ptr<f32> -> !lowlp.global<256xf32>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<256xf32> -> !lowlp.tile<256xf32, spatial(32).local(8)>
  lowlp.return
}

// Runs of 3 bytes are no machine width; runs of 6 are three times 2 bytes.
// CHECK-LABEL: gpu.func @odd_runs
// CHECK-COUNT-3: simt.load %{{.*}} align 1 : <global> -> i8
// CHECK-COUNT-3: simt.load %{{.*}} align 2 : <global> -> i16
// CHECK-NOT: simt.load
lowlp.kernel @odd_runs(%p: !lowlp.ptr<ui8> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [192] : !lowlp.ptr<ui8> -> !lowlp.global<192xui8>
  %three = lowlp.load_global %v[%c0] : !lowlp.global<192xui8> -> !lowlp.tile<96xui8, spatial(32).local(3)>
  %six = lowlp.load_global %v[%c0] : !lowlp.global<192xui8> -> !lowlp.tile<192xui8, spatial(32).local(6)>
  lowlp.return
}

// Codes of 4 bits: 32 of them are 16 bytes, 2 are one byte.
// CHECK-LABEL: gpu.func @nibbles
// CHECK-COUNT-1: simt.load %{{.*}} align 16 : <global> -> vector<4xi32>
// CHECK-COUNT-1: simt.load %{{.*}} align 1 : <global> -> i8
// CHECK-NOT: simt.load
lowlp.kernel @nibbles(%p: !lowlp.ptr<f4E2M1FN> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [1024] : !lowlp.ptr<f4E2M1FN> -> !lowlp.global<1024xf4E2M1FN>
  %long = lowlp.load_global %v[%c0] : !lowlp.global<1024xf4E2M1FN>
    -> !lowlp.tile<1024xf4E2M1FN, spatial(32).local(32)>
  %pair = lowlp.load_global %v[%c0] : !lowlp.global<1024xf4E2M1FN> -> !lowlp.tile<64xf4E2M1FN, spatial(32).local(2)>
  lowlp.return
}

// What divides an offset is read through a loop, sums, products, casts and choices.
// CHECK-LABEL: gpu.func @arithmetic
// CHECK-COUNT-1: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK-COUNT-4: simt.load %{{.*}} align 4 : <global> -> vector<2xf16>
// CHECK-NOT: simt.load
lowlp.kernel @arithmetic(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %k: i32 {lowlp.divisible_by = 16 : i64})
    attributes {grid = affine_map<(k) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  %wide = arith.extsi %k : i32 to i64
  %end = arith.index_cast %wide : i64 to index
  %v = lowlp.view_global %p shape [32, %end] strides [64, 1] : !lowlp.ptr<f16> -> !lowlp.global<32x?xf16>
  scf.for %i = %c8 to %end step %c24 {
    %minimum = arith.minsi %i, %end : index
    %bigger = arith.cmpi ugt, %i, %c24 : index
    %chosen = arith.select %bigger, %minimum, %c24 : index
    %offset = arith.addi %chosen, %c8 : index
    %t = lowlp.load_global %v[%c0, %offset] : !lowlp.global<32x?xf16> -> !t
  }
  %c1 = arith.constant 2 : index
  scf.for %i = %c0 to %end step %c1 {
    %t = lowlp.load_global %v[%c0, %i] : !lowlp.global<32x?xf16> -> !t
  }
  lowlp.return
}

// A pointer that is chosen at run time has the alignment of its elements.
// CHECK-LABEL: gpu.func @chosen_pointer
// CHECK-COUNT-8: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK-NOT: simt.load
lowlp.kernel @chosen_pointer(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %is_first = arith.cmpi eq, %b, %c0 : index
  %r = arith.select %is_first, %p, %q : !lowlp.ptr<f16>
  %v = lowlp.view_global %r shape [32, 64] : !lowlp.ptr<f16> -> !lowlp.global<32x64xf16>
  %t = lowlp.load_global %v[%c0, %c0] : !lowlp.global<32x64xf16> -> !t
  lowlp.return
}
