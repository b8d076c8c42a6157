// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

!a = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!b_codes = !lowlp.tile<16x8xsi6, local(2, 1).column_spatial(4, 8).local(2, 1)>
!b_bytes = !lowlp.tile<96xui8, local(3).spatial(32)>
!c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: lowlp.kernel @memory(%[[P:.*]]: !lowlp.ptr<f16>, %[[M:.*]]: i32, %[[LD:.*]]: i64)
// GENERIC: "lowlp.kernel"() <{
lowlp.kernel @memory(%p: !lowlp.ptr<f16>, %m: i32, %ld: i64)
    attributes {grid = affine_map<(m, ld) -> (m ceildiv 16, 2)>, num_threads = 32 : i64} {
  // CHECK: %[[I:.*]]:2 = lowlp.block_indices : index, index
  // GENERIC: "lowlp.block_indices"() : () -> (index, index)
  %bi, %bj = lowlp.block_indices : index, index
  %rows = arith.index_cast %m : i32 to index
  %stride = arith.index_cast %ld : i64 to index
  // CHECK: lowlp.view_global %[[P]] shape [%{{.*}}, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // GENERIC: "lowlp.view_global"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 0>, staticShape = array<i64: -9223372036854775808, 64>}>
  %row_major = lowlp.view_global %p shape [%rows, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // CHECK: %[[V:.*]] = lowlp.view_global %[[P]] shape [2, %{{.*}}, 64] strides [0, %{{.*}}, 1] : !lowlp.ptr<f16> -> !lowlp.global<2x?x64xf16>
  // GENERIC: "lowlp.view_global"({{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1>
  %v = lowlp.view_global %p shape [2, %rows, 64] strides [0, %stride, 1] : !lowlp.ptr<f16> -> !lowlp.global<2x?x64xf16>
  // CHECK: lowlp.load_global %[[V]][%[[I]]#1, %[[I]]#0, %[[I]]#1] : !lowlp.global<2x?x64xf16> -> !lowlp.tile<16x16xf16,
  // GENERIC: "lowlp.load_global"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!lowlp.global<2x?x64xf16>, index, index, index)
  %t = lowlp.load_global %v[%bj, %bi, %bj] : !lowlp.global<2x?x64xf16> -> !a
  // CHECK: lowlp.load_global %{{.*}}[{{.*}}] in_bounds : !lowlp.global<?x64xf16>
  // GENERIC: "lowlp.load_global"({{.*}}) <{in_bounds}>
  %u = lowlp.load_global %row_major[%bi, %bj] in_bounds : !lowlp.global<?x64xf16> -> !a
  // CHECK: lowlp.store_global %{{.*}}, %[[V]][{{.*}}] : !lowlp.tile<16x16xf16,{{.*}}>, !lowlp.global<2x?x64xf16>
  lowlp.store_global %t, %v[%bj, %bi, %bj] : !a, !lowlp.global<2x?x64xf16>
  // CHECK: lowlp.store_global %{{.*}}, %{{.*}}[{{.*}}] in_bounds {test.note = 1 : i64} : !lowlp.tile
  // GENERIC: "lowlp.store_global"({{.*}}) <{in_bounds}> {test.note = 1 : i64}
  lowlp.store_global %u, %row_major[%bi, %bj] in_bounds {test.note = 1 : i64} : !a, !lowlp.global<?x64xf16>
  // CHECK: lowlp.return
  // GENERIC: "lowlp.return"() : () -> ()
  lowlp.return
}

// CHECK-LABEL: func.func @compute
// CHECK-SAME: %[[A:.*]]: !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>,
func.func @compute(%a: !a, %bytes: !b_bytes, %zero: f32) -> !c {
  // CHECK: %[[C0:.*]] = lowlp.splat %{{.*}} : f32 -> !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
  // GENERIC: "lowlp.splat"(%{{.*}}) : (f32) ->
  %c0 = lowlp.splat %zero : f32 -> !c
  // CHECK: lowlp.view %{{.*}} : !lowlp.tile<96xui8, local(3).spatial(32)> -> !lowlp.tile<16x8xsi6, local(2, 1).column_spatial(4, 8).local(2, 1)>
  %codes = lowlp.view %bytes : !b_bytes -> !b_codes
  // CHECK: %[[B:.*]] = lowlp.cast %{{.*}} : !lowlp.tile<16x8xsi6, {{.*}}> -> !lowlp.tile<16x8xf16,
  %b = lowlp.cast %codes : !b_codes -> !b
  // CHECK: %[[D:.*]] = lowlp.dot %[[A]], %[[B]], %[[C0]] : !lowlp.tile<16x16xf16, {{.*}}>, !lowlp.tile<16x8xf16, {{.*}}>, !lowlp.tile<16x8xf32,
  // GENERIC: "lowlp.dot"(%{{.*}}, %{{.*}}, %{{.*}}) : (!lowlp.tile<16x16xf16,
  %d = lowlp.dot %a, %b, %c0 : !a, !b, !c
  // CHECK: %[[SUM:.*]] = lowlp.add %[[D]], %[[C0]] : !lowlp.tile<16x8xf32,
  %sum = lowlp.add %d, %c0 : !c
  // CHECK: %[[DIFF:.*]] = lowlp.sub %[[SUM]], %[[D]] : !lowlp.tile
  %difference = lowlp.sub %sum, %d : !c
  // CHECK: %[[PROD:.*]] = lowlp.mul %[[DIFF]], %[[D]] : !lowlp.tile
  %product = lowlp.mul %difference, %d : !c
  // CHECK: %[[QUOT:.*]] = lowlp.div %[[PROD]], %[[D]] : !lowlp.tile
  %quotient = lowlp.div %product, %d : !c
  // CHECK: lowlp.neg %[[QUOT]] : !lowlp.tile
  // GENERIC: "lowlp.neg"(%{{.*}}) : (!lowlp.tile
  %negative = lowlp.neg %quotient : !c
  return %negative : !c
}
