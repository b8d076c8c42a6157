// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// CHECK: module attributes {gpu.container_module}
// CHECK: gpu.module @kernels {

// What a launch must know stands on the function: the grid, the block, and each parameter's name, type and promises.
// The alignment is what the kernel needs: that of the elements, the promise, or 4 where codes are stored by atomics.
// CHECK: gpu.func @described(%{{.*}}: !simt.ptr<global>, %{{.*}}: !simt.ptr<global>, %{{.*}}: !simt.ptr<global>,
// CHECK-SAME: %{{.*}}: i32, %{{.*}}: i64, %{{.*}}: f32) kernel attributes {
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>, lowlp.grid = affine_map<(d0, d1) -> (d0 ceildiv 16, d1, 2)>, lowlp.parameters = [
// CHECK-SAME: {align = 16 : i64, name = "x", type = !lowlp.ptr<f16>},
// CHECK-SAME: {align = 4 : i64, name = "codes", type = !lowlp.ptr<si6>, written},
// CHECK-SAME: {align = 2 : i64, name = "arg2", type = !lowlp.ptr<bf16>},
// CHECK-SAME: {divisible_by = 8 : i64, name = "m", type = i32},
// CHECK-SAME: {name = "arg4", type = i64}, {name = "arg5", type = f32}]}
lowlp.kernel @described(%x: !lowlp.ptr<f16> {lowlp.name = "x", lowlp.align = 16 : i64},
                        %codes: !lowlp.ptr<si6> {lowlp.name = "codes"},
                        %less: !lowlp.ptr<bf16> {lowlp.align = 1 : i64},
                        %m: i32 {lowlp.name = "m", lowlp.divisible_by = 8 : i64}, %n: i64, %scale: f32)
    attributes {grid = affine_map<(m, n) -> (m ceildiv 16, n, 2)>, num_threads = 64 : i64} {
  // CHECK-DAG: %[[X:.*]] = gpu.block_id x
  // CHECK-DAG: %[[Y:.*]] = gpu.block_id y
  // CHECK-DAG: %[[Z:.*]] = gpu.block_id z
  // CHECK: gpu.return
  %i:3 = lowlp.block_indices : index, index, index
  %v = lowlp.view_global %x shape [2, 2, 64] : !lowlp.ptr<f16> -> !lowlp.global<2x2x64xf16>
  %t = lowlp.load_global %v[%i#0, %i#1, %i#2] : !lowlp.global<2x2x64xf16> -> !lowlp.tile<64xf16, spatial(64)>
  %q = lowlp.cast %t : !lowlp.tile<64xf16, spatial(64)> -> !lowlp.tile<64xsi6, spatial(64)>
  %w = lowlp.view_global %codes shape [64] : !lowlp.ptr<si6> -> !lowlp.global<64xsi6>
  lowlp.store_global %q, %w[%i#0] : !lowlp.tile<64xsi6, spatial(64)>, !lowlp.global<64xsi6>
  lowlp.return
}

// A pointer that is chosen at run time may be any of them: both are written.
// CHECK: gpu.func @chosen
// CHECK-SAME: {align = 2 : i64, name = "arg0", type = !lowlp.ptr<f16>, written},
// CHECK-SAME: {align = 2 : i64, name = "arg1", type = !lowlp.ptr<f16>, written}]
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : !simt.ptr<global>
lowlp.kernel @chosen(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %b = lowlp.block_indices : index
  %is_first = arith.cmpi eq, %b, %c0 : index
  %r = scf.if %is_first -> !lowlp.ptr<f16> { scf.yield %p : !lowlp.ptr<f16> } else { scf.yield %q : !lowlp.ptr<f16> }
  %v = lowlp.view_global %r shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %t = lowlp.splat %one : f16 -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.store_global %t, %v[%c0] : !lowlp.tile<32xf16, spatial(32)>, !lowlp.global<32xf16>
  lowlp.return
}

// Tiles go through loops and branches as the registers of one thread.
!f32 = !lowlp.tile<64xf32, spatial(32).local(2)>
!codes = !lowlp.tile<64xui4, spatial(32).local(2)>
// CHECK: gpu.func @control_flow
// CHECK: %[[FOR:.*]]:2 = scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[Q:.*]] = %{{.*}}) -> (vector<2xf32>, vector<1xi32>)
// CHECK:   scf.yield %{{.*}}, %{{.*}} : vector<2xf32>, vector<1xi32>
// CHECK: %[[IF:.*]] = scf.if %{{.*}} -> (vector<2xf32>) {
// CHECK:   arith.negf %[[FOR]]#0 : vector<2xf32>
// CHECK: %[[WHILE:.*]]:2 = scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %[[IF]]) : (index, vector<2xf32>) -> (index, vector<2xf32>) {
// CHECK:   scf.condition(%{{.*}}) %{{.*}}, %{{.*}} : index, vector<2xf32>
// CHECK:   ^bb0(%{{.*}}: index, %[[D:.*]]: vector<2xf32>):
// CHECK:   arith.addf %[[D]], %[[D]] : vector<2xf32>
lowlp.kernel @control_flow(%p: !lowlp.ptr<f32>, %x: f32, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.index_cast %n : i32 to index
  %s = lowlp.splat %x : f32 -> !f32
  %q = lowlp.cast %s : !f32 -> !codes
  %sum, %last = scf.for %i = %c0 to %end step %c1 iter_args(%a = %s, %b = %q) -> (!f32, !codes) {
    %wide = lowlp.cast %b : !codes -> !f32
    %next = lowlp.add %a, %wide : !f32
    %code = lowlp.cast %next : !f32 -> !codes
    scf.yield %next, %code : !f32, !codes
  }
  %is_empty = arith.cmpi eq, %end, %c0 : index
  %r = scf.if %is_empty -> !f32 {
    %minus = lowlp.neg %sum : !f32
    scf.yield %minus : !f32
  } else {
    scf.yield %sum : !f32
  }
  %count, %twice = scf.while (%i = %c0, %t = %r) : (index, !f32) -> (index, !f32) {
    %goes_on = arith.cmpi ult, %i, %end : index
    scf.condition(%goes_on) %i, %t : index, !f32
  } do {
  ^bb0(%i: index, %t: !f32):
    %j = arith.addi %i, %c1 : index
    %d = lowlp.add %t, %t : !f32
    scf.yield %j, %d : index, !f32
  }
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  lowlp.store_global %twice, %v[%c0] : !f32, !lowlp.global<64xf32>
  lowlp.return
}
