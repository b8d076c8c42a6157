// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!column = !lowlp.tile<32xsi6, spatial(32)>
!row = !lowlp.tile<32xf16, spatial(32)>

// Tiles lie one after the other, at multiples of 16 bytes.
// CHECK-LABEL: gpu.func @places
// CHECK-SAME: lowlp.shared_bytes = 96 : i64
// CHECK-DAG: %[[A:.*]] = simt.shared_memory 0 : <shared>
// CHECK-DAG: %[[B:.*]] = simt.shared_memory 32 : <shared>
// CHECK: simt.load %[[B]]
// CHECK: simt.atomic_rmw and %{{.*}}, %[[A]]
// CHECK: gpu.barrier
// CHECK: simt.load %[[A]][%{{.*}}] align 1 : <shared> -> i8
lowlp.kernel @places(%p: !lowlp.ptr<si6>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %codes = lowlp.alloc_shared : !lowlp.shared<32xsi6>
  %rows = lowlp.alloc_shared : !lowlp.shared<32xf16>
  %u = lowlp.load_shared %rows[%c0] : !lowlp.shared<32xf16> -> !row
  %q = lowlp.cast %u : !row -> !column
  lowlp.store_shared %q, %codes[%c0] : !column, !lowlp.shared<32xsi6>
  lowlp.synchronize
  %t = lowlp.load_shared %codes[%c0] : !lowlp.shared<32xsi6> -> !column
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si6> -> !lowlp.global<32xsi6>
  lowlp.store_global %t, %v[%c0] : !column, !lowlp.global<32xsi6>
  lowlp.return
}

// CHECK-LABEL: gpu.func @no_shared_memory
// CHECK-NOT: shared_bytes
// CHECK: gpu.return
lowlp.kernel @no_shared_memory() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// 16 bytes at once: runs of 8 in both layouts, after a stage and a swizzle. Chunk j of row i is at j xor i.
// CHECK-LABEL: gpu.func @swizzled
// CHECK-DAG: %[[T:.*]] = gpu.thread_id x
// CHECK-DAG: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: arith.xori
// CHECK: arith.cmpi ult, %[[BLOCK]], %{{c3.*}} : index
// CHECK: simt.load %{{.*}}[%{{.*}}] align 16 : <shared> -> vector<8xf16>
// CHECK-NOT: simt.load
lowlp.kernel @swizzled(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (3)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %s = lowlp.alloc_shared : !lowlp.shared<3x8x32xf16, local(3, 1, 1).swizzle(local(8, 4), dim=1).local(1, 8)>
  %t = lowlp.load_shared %s[%b, %c0, %c0]
    : !lowlp.shared<3x8x32xf16, local(3, 1, 1).swizzle(local(8, 4), dim=1).local(1, 8)>
    -> !lowlp.tile<8x32xf16, spatial(8, 4).local(1, 8)>
  %v = lowlp.view_global %p shape [8, 32] : !lowlp.ptr<f16> -> !lowlp.global<8x32xf16>
  lowlp.store_global %t, %v[%c0, %c0] : !lowlp.tile<8x32xf16, spatial(8, 4).local(1, 8)>, !lowlp.global<8x32xf16>
  lowlp.return
}

// The widest access: 16 bytes where all is known, 2 where the offset is even only, single elements down a column.
// CHECK-LABEL: gpu.func @widths
// CHECK: simt.load %{{.*}} align 16 : <shared> -> vector<4xi32>
// CHECK: simt.load %{{.*}} align 2 : <shared> -> i16
// CHECK: simt.load %{{.*}} align 1 : <shared> -> i8
lowlp.kernel @widths(%p: !lowlp.ptr<ui8>, %n: i32 {lowlp.divisible_by = 2 : i64})
    attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %i = arith.index_cast %n : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<64xui8>
  %r = lowlp.alloc_shared : !lowlp.shared<2x1xui8, column_local(2, 1)>
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %w = lowlp.view_global %p shape [2, 1] : !lowlp.ptr<ui8> -> !lowlp.global<2x1xui8>
  %a = lowlp.load_shared %s[%c0] : !lowlp.shared<64xui8> -> !lowlp.tile<16xui8, reduce(spatial(1, 32), dims=[1]).local(16)>
  lowlp.store_global %a, %v[%c0] : !lowlp.tile<16xui8, reduce(spatial(1, 32), dims=[1]).local(16)>, !lowlp.global<64xui8>
  %b = lowlp.load_shared %s[%i] : !lowlp.shared<64xui8> -> !lowlp.tile<2xui8, reduce(spatial(1, 32), dims=[1]).local(2)>
  lowlp.store_global %b, %v[%c0] : !lowlp.tile<2xui8, reduce(spatial(1, 32), dims=[1]).local(2)>, !lowlp.global<64xui8>
  %c = lowlp.load_shared %r[%c0, %c0] in_bounds
    : !lowlp.shared<2x1xui8, column_local(2, 1)> -> !lowlp.tile<2x1xui8, reduce(spatial(1, 1, 32), dims=[2]).local(2, 1)>
  lowlp.store_global %c, %w[%c0, %c0] : !lowlp.tile<2x1xui8, reduce(spatial(1, 1, 32), dims=[2]).local(2, 1)>, !lowlp.global<2x1xui8>
  lowlp.return
}

!a = !lowlp.shared<3x16x256xf16, local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)>
!c = !lowlp.shared<16x64xf16, local(1, 2).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>
!by_column = !lowlp.shared<4x6xf32, column_local(4, 6)>
!split = !lowlp.shared<4x6xf32, local(2, 3).column_local(2, 2)>

// Addresses in bytes, known where offsets and threads are.
// CHECK-LABEL: gpu.func @addresses
// CHECK-DAG: %[[IN_A:.*]] = arith.constant 10870 : i64
// CHECK-DAG: %[[IN_C:.*]] = arith.constant 1406 : i64
// CHECK-DAG: %[[IN_COLUMNS:.*]] = arith.constant 72 : i64
// CHECK-DAG: %[[IN_SPLIT:.*]] = arith.constant 88 : i64
// Chunk 19 / 8 of row 5 of stage 1: ((16 + 5) * 256 + 8 * (2 xor 5) + 3) * 2.
// CHECK: simt.load %{{.*}}[%[[IN_A]]]
// Chunk 1 of half 1 of row 5: (16 * 32 + 5 * 32 + 8 * (1 xor 5 / 2) + 7) * 2.
// CHECK: simt.load %{{.*}}[%[[IN_C]]]
// (2, 4): (4 * 4 + 2) * 4.
// CHECK: simt.load %{{.*}}[%[[IN_COLUMNS]]]
// (2, 5) is (0, 1) of part (1, 2): ((1 * 3 + 2) * 4 + 2) * 4.
// CHECK: simt.load %{{.*}}[%[[IN_SPLIT]]]
lowlp.kernel @addresses(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c19 = arith.constant 19 : index
  %c47 = arith.constant 47 : index
  %a = lowlp.alloc_shared : !a
  %c = lowlp.alloc_shared : !c
  %by_column = lowlp.alloc_shared : !by_column
  %split = lowlp.alloc_shared : !split
  %v = lowlp.view_global %p shape [4] : !lowlp.ptr<f16> -> !lowlp.global<4xf16>
  %w = lowlp.view_global %q shape [4] : !lowlp.ptr<f32> -> !lowlp.global<4xf32>
  %0 = lowlp.load_shared %a[%c1, %c5, %c19] : !a -> !lowlp.tile<1xf16, reduce(spatial(1, 32), dims=[1])>
  lowlp.store_global %0, %v[%c0] : !lowlp.tile<1xf16, reduce(spatial(1, 32), dims=[1])>, !lowlp.global<4xf16>
  %1 = lowlp.load_shared %c[%c5, %c47] : !c -> !lowlp.tile<1xf16, reduce(spatial(1, 32), dims=[1])>
  lowlp.store_global %1, %v[%c1] : !lowlp.tile<1xf16, reduce(spatial(1, 32), dims=[1])>, !lowlp.global<4xf16>
  %2 = lowlp.load_shared %by_column[%c2, %c4] : !by_column -> !lowlp.tile<1xf32, reduce(spatial(1, 32), dims=[1])>
  lowlp.store_global %2, %w[%c0] : !lowlp.tile<1xf32, reduce(spatial(1, 32), dims=[1])>, !lowlp.global<4xf32>
  %3 = lowlp.load_shared %split[%c2, %c5] : !split -> !lowlp.tile<1xf32, reduce(spatial(1, 32), dims=[1])>
  lowlp.store_global %3, %w[%c1] : !lowlp.tile<1xf32, reduce(spatial(1, 32), dims=[1])>, !lowlp.global<4xf32>
  lowlp.return
}
