// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!tile = !lowlp.tile<4x64xf16, spatial(4, 8).local(1, 8)>
!rows = !lowlp.tile<4x1xsi32, reduce(spatial(4, 8), dims=[1], keep_dims=True)>

// A row's index takes the place of the thread's; its 8 neighbours move at once, and it alone is compared with the rows.
// CHECK-LABEL: gpu.func @rows
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 40 : index
// CHECK-DAG: %[[COLUMNS:.*]] = arith.constant 64 : index
// CHECK: %[[LOADED:.*]] = scf.if %{{.*}} -> (i32)
// CHECK: %[[ROW:.*]] = arith.index_cast %[[LOADED]] : i32 to index
// CHECK: %[[START:.*]] = arith.muli %[[ROW]], %[[COLUMNS]] : index
// CHECK: %[[IS:.*]] = arith.cmpi ult, %[[ROW]], %[[ROWS]] : index
// CHECK: %[[INSIDE:.*]] = arith.andi %[[IS]], %{{.*}} : i1
// CHECK: scf.if %[[INSIDE]] -> (vector<8xf16>)
// CHECK: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK: scf.if %[[INSIDE]] {
// CHECK: simt.store %{{.*}} align 16 : vector<8xf16>
lowlp.kernel @rows(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %i: !lowlp.ptr<si32>,
                   %q: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [40, 64] : !lowlp.ptr<f16> -> !lowlp.global<40x64xf16>
  %w = lowlp.view_global %q shape [40, 64] : !lowlp.ptr<f16> -> !lowlp.global<40x64xf16>
  %x = lowlp.view_global %i shape [4, 1] : !lowlp.ptr<si32> -> !lowlp.global<4x1xsi32>
  %rows = lowlp.load_global %x[%c0, %c0] : !lowlp.global<4x1xsi32> -> !rows
  %t = lowlp.gather_global %v[%c0, %c0] indices %rows dim 0 : !lowlp.global<40x64xf16>, !rows -> !tile
  lowlp.scatter_global %t, %w[%c0, %c0] indices %rows dim 0 : !tile, !lowlp.global<40x64xf16>, !rows
  lowlp.return
}

// An index for each element moves one at a time. What a scatter writes through is written.
// CHECK-LABEL: gpu.func @elements
// CHECK-SAME: {align = 2 : i64, name = "arg0", type = !lowlp.ptr<f16>, written}
// CHECK: simt.assert %{{.*}}, "the access promises in_bounds, but an element lies outside of the view"
// CHECK: simt.load %{{.*}} align 2 : <global> -> f16
// CHECK: simt.store %{{.*}} align 2 : f16
!each = !lowlp.tile<64xui16, spatial(32).local(2)>
!half = !lowlp.tile<64xf16, spatial(32).local(2)>
lowlp.kernel @elements(%p: !lowlp.ptr<f16>, %i: !lowlp.ptr<ui16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [40] : !lowlp.ptr<f16> -> !lowlp.global<40xf16>
  %x = lowlp.view_global %i shape [64] : !lowlp.ptr<ui16> -> !lowlp.global<64xui16>
  %each = lowlp.load_global %x[%c0] in_bounds : !lowlp.global<64xui16> -> !each
  %t = lowlp.gather_global %v[%c0] indices %each dim 0 in_bounds : !lowlp.global<40xf16>, !each -> !half
  lowlp.scatter_global %t, %v[%c0] indices %each dim 0 : !half, !lowlp.global<40xf16>, !each
  lowlp.return
}

// Every thread reads the same place.
// CHECK-LABEL: gpu.func @scalars
// CHECK-NOT: gpu.thread_id
// CHECK: %[[N:.*]] = simt.load %arg0[%{{.*}}] align 2 : <global> -> i16
// CHECK: %[[INDEX:.*]] = arith.index_castui %[[N]] : i16 to index
// CHECK: scf.for %{{.*}} = %c0 to %[[INDEX]]
// CHECK: simt.load %{{.*}} align 2 : <shared> -> bf16
// CHECK: arith.extf %{{.*}} : bf16 to f32
lowlp.kernel @scalars(%p: !lowlp.ptr<ui16>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = lowlp.view_global %p shape [8] : !lowlp.ptr<ui16> -> !lowlp.global<8xui16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %s = lowlp.alloc_shared : !lowlp.shared<8xbf16>
  %n = lowlp.load_scalar %v[%c1] in_bounds : !lowlp.global<8xui16> -> index
  scf.for %k = %c0 to %n step %c1 {
    %f = lowlp.load_scalar %s[%k] : !lowlp.shared<8xbf16> -> f32
    %t = lowlp.splat %f : f32 -> !lowlp.tile<32xf32, spatial(32)>
    lowlp.store_global %t, %w[%c0] : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  }
  lowlp.return
}
