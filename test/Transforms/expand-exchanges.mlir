// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-expand-exchanges))" | FileCheck %s
// RUN: lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-expand-exchanges))" --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!rows = !lowlp.tile<16x8xf32, spatial(8, 4).local(2, 2)>
!columns = !lowlp.tile<16x8xf32, spatial(8, 4).column_local(2, 2)>
!both = !lowlp.tile<2xf32, local(2).reduce(spatial(32), dims=[0])>
!one = !lowlp.tile<2xf32, spatial(2).reduce(spatial(16), dims=[0])>
!outer = !lowlp.tile<4x16xf32, local(2, 1).spatial(2, 16)>
!inner = !lowlp.tile<4x16xf32, spatial(2, 1).local(2, 1).spatial(1, 16)>
!by_row = !lowlp.tile<32x32xf32, local(32, 1).spatial(1, 32)>
!by_column = !lowlp.tile<32x32xf32, local(1, 32).spatial(32, 1)>

// The kernel says how each conversion is carried out: the cheapest way.
// REMARK: [Missed] registers | Category:lowlp-expand-exchanges | Function=ways | Op=lowlp.convert_layout, Reason="shuffles cost more: shared memory, 4608 bytes, 64 passes of the banks, cost 376; not 31 shuffles, cost 5983"
// CHECK-LABEL: lowlp.kernel @ways
// CHECK-SAME: "conversion at expand-exchanges.mlir:[[#@LINE+18]]: nothing"
// CHECK-SAME: "conversion at expand-exchanges.mlir:[[#@LINE+18]]: choices between registers, cost 3; not shared memory,
// CHECK-SAME: "conversion at expand-exchanges.mlir:[[#@LINE+18]]: 1 shuffle, cost
// CHECK-SAME: "conversion at expand-exchanges.mlir:[[#@LINE+18]]: shared memory, 4608 bytes, 64 passes of the banks, cost {{[0-9]+}}; not {{[0-9]+}} shuffles
// CHECK: lowlp.convert_layout
// CHECK: lowlp.convert_layout
// CHECK: lowlp.convert_layout
// CHECK: %[[PLACE:.*]] = lowlp.alloc_shared scratch : !lowlp.shared<32x36xf32>
// CHECK: lowlp.store_shared %{{.*}}, %[[PLACE]][%{{.*}}, %{{.*}}] in_bounds
// CHECK: lowlp.synchronize
// CHECK: lowlp.load_shared %[[PLACE]][%{{.*}}, %{{.*}}] in_bounds
// CHECK: lowlp.return
lowlp.kernel @ways(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %a = lowlp.splat %zero : f32 -> !rows
  %b = lowlp.splat %zero : f32 -> !both
  %c = lowlp.splat %zero : f32 -> !outer
  %d = lowlp.splat %zero : f32 -> !by_row
  %1 = lowlp.convert_layout %a : !rows -> !columns
  %2 = lowlp.convert_layout %b : !both -> !one
  %3 = lowlp.convert_layout %c : !outer -> !inner
  %4 = lowlp.convert_layout %d : !by_row -> !by_column
  lowlp.return
}

// Numbers of 5 bits fill no whole bytes: they become bytes on the way.
// REMARK: Function=narrow | Op=lowlp.convert_layout, Reason="elements pass between warps: shared memory, 64 bytes, 4 passes of the banks, cost 64"
// CHECK-LABEL: lowlp.kernel @narrow
// CHECK: lowlp.view %{{.*}} : !lowlp.tile<2x32x!lowlp.float<e2m2>, spatial(2, 32)> -> !lowlp.tile<2x32xui5, spatial(2, 32)>
// CHECK: lowlp.cast %{{.*}} -> !lowlp.tile<2x32xui8, spatial(2, 32)>
// CHECK: lowlp.alloc_shared scratch : !lowlp.shared<2x32xui8>
// CHECK: lowlp.load_shared {{.*}} -> !lowlp.tile<2x32xui8, column_spatial(2, 32)>
// CHECK: lowlp.cast %{{.*}} -> !lowlp.tile<2x32xui5, column_spatial(2, 32)>
// CHECK: lowlp.view %{{.*}} -> !lowlp.tile<2x32x!lowlp.float<e2m2>, column_spatial(2, 32)>
lowlp.kernel @narrow(%p: !lowlp.ptr<!lowlp.float<e2m2>>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [2, 32] : !lowlp.ptr<!lowlp.float<e2m2>> -> !lowlp.global<2x32x!lowlp.float<e2m2>>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<2x32x!lowlp.float<e2m2>> -> !lowlp.tile<2x32x!lowlp.float<e2m2>, spatial(2, 32)>
  %y = lowlp.convert_layout %x : !lowlp.tile<2x32x!lowlp.float<e2m2>, spatial(2, 32)> -> !lowlp.tile<2x32x!lowlp.float<e2m2>, column_spatial(2, 32)>
  lowlp.store_global %y, %v[%c0, %c0] : !lowlp.tile<2x32x!lowlp.float<e2m2>, column_spatial(2, 32)>, !lowlp.global<2x32x!lowlp.float<e2m2>>
  lowlp.return
}

// 4 warps share a row: within warps, all to all, and within threads. f16 is rounded once, at the end.
// CHECK-LABEL: lowlp.kernel @reduction
// CHECK: %[[X:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<2x128xf16, spatial(1, 128).local(2, 1)> -> !lowlp.tile<2x128xf32,
// CHECK: %[[PARTS:.*]] = lowlp.view %[[X]] : !lowlp.tile<2x128xf32, spatial(1, 128).local(2, 1)> -> !lowlp.tile<4x2x32xf32
// CHECK: %[[WARPS:.*]] = lowlp.reduce add %[[PARTS]] dim 2 : {{.*}} -> !lowlp.tile<4x2xf32
// CHECK: lowlp.store_shared %[[WARPS]]
// CHECK: lowlp.synchronize
// CHECK: %[[ALL:.*]] = lowlp.load_shared {{.*}} -> !lowlp.tile<4x2xf32
// CHECK: %[[SUM:.*]] = lowlp.reduce add %[[ALL]] dim 0 : {{.*}} -> !lowlp.tile<2xf32
// CHECK: lowlp.cast %[[SUM]] : {{.*}} -> !lowlp.tile<2xf16
!wide = !lowlp.tile<2x128xf16, local(2, 1).spatial(1, 128)>
!sums = !lowlp.tile<2xf16, local(2).reduce(spatial(1, 128), dims=[1])>
lowlp.kernel @reduction(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [2, 128] : !lowlp.ptr<f16> -> !lowlp.global<2x128xf16>
  %w = lowlp.view_global %p shape [2] : !lowlp.ptr<f16> -> !lowlp.global<2xf16>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<2x128xf16> -> !wide
  %s = lowlp.reduce add %x dim 1 : !wide -> !sums
  lowlp.store_global %s, %w[%c0] : !sums, !lowlp.global<2xf16>
  lowlp.return
}

// What is looked up and then held as fragments is gathered as matrices, where all entries are in shared memory.
!placed = !lowlp.codebook<256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 128>>
!lanes_of_codes = !lowlp.tile<16x2xui8, column_spatial(16, 2)>
!looked_up = !lowlp.tile<16x16xf16, column_spatial(16, 2).local(1, 8)>
!fragments_of_a = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: lowlp.kernel @matrices
// CHECK-SAME: looked up as matrices
// CHECK: lowlp.lookup_vectors {{.*}} -> !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
// CHECK-NOT: lowlp.convert_layout
// CHECK: lowlp.return
lowlp.kernel @matrices(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui8>, %y: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256, 8] : !lowlp.ptr<f16> -> !lowlp.global<256x8xf16>
  %w = lowlp.view_global %q shape [16, 2] : !lowlp.ptr<ui8> -> !lowlp.global<16x2xui8>
  %z = lowlp.view_global %y shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %codes = lowlp.load_global %w[%c0, %c0] : !lowlp.global<16x2xui8> -> !lanes_of_codes
  %tile = lowlp.alloc_shared : !lowlp.shared<32768xui8>
  %book = lowlp.load_codebook %v[] placed %tile : !lowlp.shared<32768xui8> : !lowlp.global<256x8xf16> -> !placed
  %t = lowlp.lookup_vectors %codes in %book[0] along 1 : !lanes_of_codes, !placed -> !looked_up
  %f = lowlp.convert_layout %t : !looked_up -> !fragments_of_a
  lowlp.store_global %f, %z[%c0, %c0] : !fragments_of_a, !lowlp.global<16x16xf16>
  lowlp.return
}
