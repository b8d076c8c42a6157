// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

!tile = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!rows = !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!columns = !lowlp.tile<8xf32, reduce(local(2, 1).spatial(8, 4).local(1, 2), dims=[0])>
!columns_apart = !lowlp.tile<2x16x4xf32, local(1, 2, 1).spatial(1, 8, 4).local(2, 1, 1)>
!turned = !lowlp.tile<8x16xf32, local(1, 2).column_spatial(4, 8).local(2, 1)>

// CHECK-LABEL: func.func @shapes
// CHECK-SAME: %[[X:.*]]: !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
func.func @shapes(%x: !tile) -> (!rows, !tile, !tile, !turned) {
  // CHECK: lowlp.iota dim 1 : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
  // GENERIC: "lowlp.iota"() <{dim = 1 : i64}>
  %indices = lowlp.iota dim 1 : !tile
  // CHECK: %[[SUM:.*]] = lowlp.reduce add %[[X]] dim 1 : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)> -> !lowlp.tile<16x1xf32, [[ROWS:.*]]>
  // GENERIC: "lowlp.reduce"(%{{.*}}) <{dim = 1 : i64, kind = 0 : i32}>
  %sum = lowlp.reduce add %x dim 1 : !tile -> !rows
  // CHECK: %[[MAX:.*]] = lowlp.reduce max %[[X]] dim 0 : !lowlp.tile<16x8xf32, {{.*}}> -> !lowlp.tile<8xf32,
  %max = lowlp.reduce max %x dim 0 : !tile -> !columns
  // CHECK: lowlp.reduce min %[[X]] dim 1
  // GENERIC: "lowlp.reduce"(%{{.*}}) <{dim = 1 : i64, kind = 2 : i32}>
  %min = lowlp.reduce min %x dim 1 : !tile -> !rows
  // CHECK: lowlp.broadcast %[[SUM]] : !lowlp.tile<16x1xf32, {{.*}}> -> !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
  %sums = lowlp.broadcast %sum : !rows -> !tile
  // CHECK: lowlp.broadcast %[[MAX]] : !lowlp.tile<8xf32, {{.*}}> -> !lowlp.tile<16x8xf32,
  %maxima = lowlp.broadcast %max : !columns -> !tile
  // CHECK: lowlp.transpose %[[X]] [1, 0] : !lowlp.tile<16x8xf32, {{.*}}> -> !lowlp.tile<8x16xf32, local(1, 2).column_spatial(4, 8).local(2, 1)>
  // GENERIC: "lowlp.transpose"(%{{.*}}) <{permutation = array<i64: 1, 0>}>
  %turned = lowlp.transpose %x [1, 0] : !tile -> !turned
  %columns = lowlp.view %x : !tile -> !columns_apart
  // CHECK: lowlp.part %{{.*}}[1] : !lowlp.tile<2x16x4xf32, {{.*}}> -> !lowlp.tile<16x4xf32, local(2, 1).spatial(8, 4)>
  // GENERIC: "lowlp.part"(%{{.*}}) <{indices = array<i64: 1>}>
  %part = lowlp.part %columns[1] : !columns_apart -> !lowlp.tile<16x4xf32, local(2, 1).spatial(8, 4)>
  return %min, %sums, %maxima, %turned : !rows, !tile, !tile, !turned
}
