// RUN: lowlp-opt %s --lowlp-convert-to-thread="arch=sm_90a" --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: lowlp-opt %s --lowlp-convert-to-thread="arch=sm_80" --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SM80

// Fragments of mma m16n8k16 between registers and shared memory: 4 registers of a by one ldmatrix, rows of b along n by
// one that transposes.

!a = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!sa = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!sb = !lowlp.shared<16x8xf16>
// CHECK-LABEL: gpu.func @fragments
// CHECK-DAG: %[[SA:.*]] = simt.shared_memory 0
// CHECK-DAG: %[[SB:.*]] = simt.shared_memory 2048
// SM90: simt.stmatrix %{{.*}}, %[[SA]][%{{.*}}] : vector<4xi32>, <shared>
// SM90: simt.stmatrix %{{.*}}, %[[SB]][%{{.*}}] trans : vector<2xi32>, <shared>
// SM80-NOT: simt.stmatrix
// CHECK: gpu.barrier
// CHECK: %[[A:.*]] = simt.ldmatrix %[[SA]][%{{.*}}] : <shared> -> vector<4xi32>
// CHECK: vector.bitcast %[[A]] : vector<4xi32> to vector<8xf16>
// CHECK: %[[B:.*]] = simt.ldmatrix %[[SB]][%{{.*}}] trans : <shared> -> vector<2xi32>
// CHECK: vector.bitcast %[[B]] : vector<2xi32> to vector<4xf16>
// CHECK-NOT: simt.ldmatrix
// CHECK-NOT: simt.load
// CHECK: gpu.return
lowlp.kernel @fragments(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<f16>, %pc: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %sa = lowlp.alloc_shared : !sa
  %sb = lowlp.alloc_shared : !sb
  %va = lowlp.view_global %pa shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %vb = lowlp.view_global %pb shape [16, 8] : !lowlp.ptr<f16> -> !lowlp.global<16x8xf16>
  %vc = lowlp.view_global %pc shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %a0 = lowlp.load_global %va[%c0, %c0] : !lowlp.global<16x16xf16> -> !a
  %b0 = lowlp.load_global %vb[%c0, %c0] : !lowlp.global<16x8xf16> -> !b
  lowlp.store_shared %a0, %sa[%c0, %c16] : !a, !sa
  lowlp.store_shared %b0, %sb[%c0, %c0] : !b, !sb
  lowlp.synchronize
  %a = lowlp.load_shared %sa[%c0, %c16] : !sa -> !a
  %b = lowlp.load_shared %sb[%c0, %c0] : !sb -> !b
  %c = lowlp.splat %zero : f32 -> !c
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  lowlp.store_global %d, %vc[%c0, %c0] : !c, !lowlp.global<16x8xf32>
  lowlp.return
}

// Four warps, each with 6 matrices: three instructions of 2. Elements of 8 bits move by 4, and where the shared tile
// keeps columns in one piece the registers that run down columns need no transposition.
!q = !lowlp.tile<96x32xsi8, spatial(1, 4).local(3, 1).local(1, 1).local(2, 1).column_spatial(4, 8).local(4, 1)>
!sq = !lowlp.shared<96x32xsi8, column_local(96, 32)>
// CHECK-LABEL: gpu.func @bytes
// CHECK-COUNT-3: simt.ldmatrix %{{.*}}[%{{.*}}] : <shared> -> vector<2xi32>
// CHECK-NOT: simt.ldmatrix
// CHECK: gpu.return
lowlp.kernel @bytes(%p: !lowlp.ptr<si8>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !sq
  %q = lowlp.load_shared %s[%c0, %c0] : !sq -> !q
  %v = lowlp.view_global %p shape [96, 32] : !lowlp.ptr<si8> -> !lowlp.global<96x32xsi8>
  lowlp.store_global %q, %v[%c0, %c0] : !q, !lowlp.global<96x32xsi8>
  lowlp.return
}

// A stage that is known to exist: (stage + 1) % 3, carried by a loop.
!ss = !lowlp.shared<3x16x16xf16>
// CHECK-LABEL: gpu.func @stages
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: simt.ldmatrix %{{.*}}[%{{.*}}] : <shared> -> vector<4xi32>
// CHECK-NOT: scf.if
// CHECK: scf.yield
lowlp.kernel @stages(%p: !lowlp.ptr<f16>, %n: i32) attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f16
  %count = arith.index_cast %n : i32 to index
  %s = lowlp.alloc_shared : !ss
  %v = lowlp.view_global %p shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %first = lowlp.splat %zero : f16 -> !a
  %last, %sum = scf.for %i = %c0 to %count step %c1 iter_args(%stage = %c0, %acc = %first) -> (index, !a) {
    %t = lowlp.load_shared %s[%stage, %c0, %c0] : !ss -> !a
    %more = lowlp.add %acc, %t : !a
    %after = arith.addi %stage, %c1 : index
    %next = arith.remui %after, %c3 : index
    scf.yield %next, %more : index, !a
  }
  lowlp.store_global %sum, %v[%c0, %c0] : !a, !lowlp.global<16x16xf16>
  lowlp.return
}

// Of a stage that may not exist the program asks; a promise is taken, and checked on the CPU.
// CHECK-LABEL: gpu.func @may_be_outside
// CHECK: %[[INSIDE:.*]] = arith.cmpi ule, %{{.*}}, %{{.*}} : index
// CHECK: scf.if %[[INSIDE]]
// CHECK: simt.ldmatrix
// CHECK: else
// CHECK: simt.load
// CHECK: simt.assert
// CHECK-NOT: scf.if
// CHECK: simt.ldmatrix
// CHECK-NOT: scf.if
// CHECK: simt.store
lowlp.kernel @may_be_outside(%p: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (4)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %s = lowlp.alloc_shared : !ss
  %v = lowlp.view_global %p shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %t = lowlp.load_shared %s[%b, %c0, %c0] : !ss -> !a
  %u = lowlp.load_shared %s[%b, %c0, %c0] in_bounds : !ss -> !a
  %sum = lowlp.add %t, %u : !a
  lowlp.store_global %sum, %v[%c0, %c0] in_bounds : !a, !lowlp.global<16x16xf16>
  lowlp.return
}

// Where it does not fit: the tile does not divide; rows of 8 bytes; an offset that leaves no row aligned; a swizzle of
// single elements; elements of 8 bits down the columns of a row-major tile; a tile larger than the shared tile.
!rows = !lowlp.tile<8x64xf16, spatial(8, 4).local(1, 16)>
!narrow = !lowlp.shared<16x16xf16, local(1, 4).local(16, 4)>
!swizzled = !lowlp.shared<16x16xf16, swizzle(local(16, 16), dim=1)>
!down = !lowlp.tile<32x8xsi8, local(2, 1).column_spatial(4, 8).local(4, 1)>
// CHECK-LABEL: gpu.func @does_not_fit
// CHECK-NOT: matrix
// CHECK: gpu.return
lowlp.kernel @does_not_fit(%p: !lowlp.ptr<f16>, %pq: !lowlp.ptr<si8>, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %i = arith.index_cast %n : i32 to index
  %wide = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %narrow = lowlp.alloc_shared : !narrow
  %swizzled = lowlp.alloc_shared : !swizzled
  %bytes = lowlp.alloc_shared : !lowlp.shared<32x16xsi8>
  %small = lowlp.alloc_shared : !lowlp.shared<8x16xf16>
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  %w = lowlp.view_global %pq shape [32, 8] : !lowlp.ptr<si8> -> !lowlp.global<32x8xsi8>
  %0 = lowlp.load_shared %wide[%c0, %c0] : !lowlp.shared<16x64xf16> -> !rows
  %1 = lowlp.load_shared %narrow[%c0, %c0] : !narrow -> !a
  %2 = lowlp.load_shared %wide[%c0, %i] : !lowlp.shared<16x64xf16> -> !a
  %3 = lowlp.load_shared %swizzled[%c0, %c0] : !swizzled -> !a
  %4 = lowlp.load_shared %bytes[%c0, %c0] : !lowlp.shared<32x16xsi8> -> !down
  %5 = lowlp.load_shared %small[%c0, %c0] : !lowlp.shared<8x16xf16> -> !a
  lowlp.store_global %0, %v[%c0, %c0] : !rows, !lowlp.global<64x64xf16>
  %6 = lowlp.add %1, %2 : !a
  %7 = lowlp.add %3, %5 : !a
  %8 = lowlp.add %6, %7 : !a
  lowlp.store_global %8, %v[%c0, %c0] : !a, !lowlp.global<64x64xf16>
  lowlp.store_global %4, %w[%c0, %c0] : !down, !lowlp.global<32x8xsi8>
  lowlp.return
}

// What several warps hold is loaded by each of them, and stored by the first alone.
!both = !lowlp.tile<16x16xf16, reduce(spatial(2, 1), dims=[0], keep_dims=True).column_local(2, 2).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: gpu.func @held_twice
// CHECK-NOT: simt.stmatrix
// CHECK: gpu.barrier
// CHECK: simt.ldmatrix
lowlp.kernel @held_twice(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<16x16xf16>
  %v = lowlp.view_global %p shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %a = lowlp.load_global %v[%c0, %c0] : !lowlp.global<16x16xf16> -> !both
  lowlp.store_shared %a, %s[%c0, %c0] : !both, !lowlp.shared<16x16xf16>
  lowlp.synchronize
  %b = lowlp.load_shared %s[%c0, %c0] : !lowlp.shared<16x16xf16> -> !both
  lowlp.store_global %b, %v[%c0, %c0] : !both, !lowlp.global<16x16xf16>
  lowlp.return
}
