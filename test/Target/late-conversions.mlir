// A number of 16 bits that is asked for before a loop and used after it: a thread that has it waits for memory where it is widened,
// which is after the loop, though the load is in a branch (the number of rows is not known).
//
// RUN: lowlp-opt %s --lowlp-to-ptx="arch=sm_90a" | FileCheck %s

// CHECK-LABEL: .entry scaled
// CHECK-NOT: cvt.f32.f16
// CHECK: ld.global.b16 \09[[SCALE:%rs[0-9]+]],
// CHECK-NOT: cvt.f32.f16
// CHECK: add.rn.f32
// CHECK-NOT: cvt.f32.f16
// CHECK: bra
// CHECK: cvt.f32.f16 \09[[WIDE:%r[0-9]+]], [[SCALE]];
// CHECK: mul.rn.f32
// CHECK-SAME: [[WIDE]]
!row = !lowlp.tile<32xf32, spatial(32)>
lowlp.kernel @scaled(%scales: !lowlp.ptr<f16>, %x: !lowlp.ptr<f32>, %y: !lowlp.ptr<f32>, %rows: i32, %steps: i32)
    attributes {grid = affine_map<(m, n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %rows : i32 to index
  %count = arith.index_cast %steps : i32 to index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !row
  %sv = lowlp.view_global %scales shape [%n] : !lowlp.ptr<f16> -> !lowlp.global<?xf16>
  %xv = lowlp.view_global %x shape [%count, 32] : !lowlp.ptr<f32> -> !lowlp.global<?x32xf32>
  %yv = lowlp.view_global %y shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %scale = lowlp.load_global %sv[%c0] : !lowlp.global<?xf16> -> !lowlp.tile<32xf16, spatial(32)>
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %zeros) -> (!row) {
    %part = lowlp.load_global %xv[%i, %c0] in_bounds : !lowlp.global<?x32xf32> -> !row
    %next = lowlp.add %acc, %part : !row
    scf.yield %next : !row
  }
  %wide = lowlp.cast %scale : !lowlp.tile<32xf16, spatial(32)> -> !row
  %scaled = lowlp.mul %sum, %wide : !row
  lowlp.store_global %scaled, %yv[%c0] in_bounds : !row, !lowlp.global<32xf32>
  lowlp.return
}

// Without a loop between, the branch that loads widens, in a loop of tiles too, which has another loop after the use.
// CHECK-LABEL: .entry at_once
// CHECK: ld.global.b16 \09{{%rs[0-9]+}}, [%rd{{[0-9]+}}];\0A\09cvt.f32.f16
lowlp.kernel @at_once(%scales: !lowlp.ptr<f16>, %x: !lowlp.ptr<f32>, %y: !lowlp.ptr<f32>, %rows: i32, %steps: i32)
    attributes {grid = affine_map<(m, n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %rows : i32 to index
  %count = arith.index_cast %steps : i32 to index
  %sv = lowlp.view_global %scales shape [%n] : !lowlp.ptr<f16> -> !lowlp.global<?xf16>
  %xv = lowlp.view_global %x shape [%count, 32] : !lowlp.ptr<f32> -> !lowlp.global<?x32xf32>
  %yv = lowlp.view_global %y shape [%count, 32] : !lowlp.ptr<f32> -> !lowlp.global<?x32xf32>
  scf.for %tile = %c0 to %count step %c1 {
    %scale = lowlp.load_global %sv[%tile] : !lowlp.global<?xf16> -> !lowlp.tile<32xf16, spatial(32)>
    %wide = lowlp.cast %scale : !lowlp.tile<32xf16, spatial(32)> -> !row
    %first = lowlp.load_global %xv[%tile, %c0] in_bounds : !lowlp.global<?x32xf32> -> !row
    %scaled = lowlp.mul %first, %wide : !row
    %sum = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %scaled) -> (!row) {
      %part = lowlp.load_global %xv[%i, %c0] in_bounds : !lowlp.global<?x32xf32> -> !row
      %next = lowlp.add %acc, %part : !row
      scf.yield %next : !row
    }
    lowlp.store_global %sum, %yv[%tile, %c0] in_bounds : !row, !lowlp.global<?x32xf32>
  }
  lowlp.return
}

// Nor is it moved where the loop uses it.
// CHECK-LABEL: .entry within
// CHECK: ld.global.b16 \09{{%rs[0-9]+}}, [%rd{{[0-9]+}}];\0A\09cvt.f32.f16
lowlp.kernel @within(%scales: !lowlp.ptr<f16>, %x: !lowlp.ptr<f32>, %y: !lowlp.ptr<f32>, %rows: i32, %steps: i32)
    attributes {grid = affine_map<(m, n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %rows : i32 to index
  %count = arith.index_cast %steps : i32 to index
  %sv = lowlp.view_global %scales shape [%n] : !lowlp.ptr<f16> -> !lowlp.global<?xf16>
  %xv = lowlp.view_global %x shape [%count, 32] : !lowlp.ptr<f32> -> !lowlp.global<?x32xf32>
  %yv = lowlp.view_global %y shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %scale = lowlp.load_global %sv[%c0] : !lowlp.global<?xf16> -> !lowlp.tile<32xf16, spatial(32)>
  %wide = lowlp.cast %scale : !lowlp.tile<32xf16, spatial(32)> -> !row
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %wide) -> (!row) {
    %part = lowlp.load_global %xv[%i, %c0] in_bounds : !lowlp.global<?x32xf32> -> !row
    %next = lowlp.fma %part, %wide, %acc : !row
    scf.yield %next : !row
  }
  lowlp.store_global %sum, %yv[%c0] in_bounds : !row, !lowlp.global<32xf32>
  lowlp.return
}
