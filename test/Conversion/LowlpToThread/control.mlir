// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// One thread of the first block writes; a per cent sign of the text is doubled.
// CHECK-LABEL: gpu.func @printed
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %c0 : index
// CHECK: %[[INROW:.*]] = arith.cmpi eq, %[[BLOCK]], %c0 : index
// CHECK: arith.andi %[[FIRST]], %[[INROW]] : i1
// CHECK: gpu.block_id y
// CHECK: gpu.block_id z
// CHECK: scf.if %{{.*}} {
// CHECK: gpu.printf "100%% of %lld, %d and %g\0A", %{{.*}}, %{{.*}}, %{{.*}} : index, i32, f32
// CHECK: scf.if %[[FIRST]] {
// CHECK: gpu.printf "every block\0A"
lowlp.kernel @printed(%n: i32, %f: f32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  lowlp.print "100% of {}, {} and {}" %b, %n, %f : index, i32, f32
  lowlp.print "every block" all_blocks
  lowlp.return
}

// The first of the threads that hold an element writes it.
// CHECK-LABEL: gpu.func @tile
// CHECK: scf.if
// CHECK: gpu.printf "t[%d, %d] = %u\0A"
// CHECK: gpu.printf "t[%d, %d] = %u\0A"
!tile = !lowlp.tile<8x2xui16, reduce(spatial(8, 4), dims=[1], keep_dims=True).local(1, 2)>
lowlp.kernel @tile(%p: !lowlp.ptr<ui16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [8, 2] : !lowlp.ptr<ui16> -> !lowlp.global<8x2xui16>
  %t = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<8x2xui16> -> !tile
  lowlp.print_tile "t", %t : !tile
  lowlp.return
}

// CHECK-LABEL: gpu.func @promises
// CHECK: simt.assert %{{.*}}, "few"
// CHECK: %[[REST:.*]] = arith.remsi %{{.*}}, %c8 : index
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[REST]], %c0 : index
// CHECK: simt.assert %[[NONE]], "the number is no multiple of 8, as was promised"
// CHECK: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK: scf.if
// CHECK-NEXT: simt.exit
lowlp.kernel @promises(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %n: i32)
    attributes {grid = affine_map<(n) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %index = arith.index_cast %n : i32 to index
  %few = arith.cmpi slt, %index, %c0 : index
  lowlp.assume %few, "few"
  %m = lowlp.assume_divisible %index by 8
  %v = lowlp.view_global %p shape [512] : !lowlp.ptr<f16> -> !lowlp.global<512xf16>
  %t = lowlp.load_global %v[%m] : !lowlp.global<512xf16> -> !lowlp.tile<256xf16, spatial(32).local(8)>
  scf.if %few {
    lowlp.exit
  }
  lowlp.store_global %t, %v[%c0] : !lowlp.tile<256xf16, spatial(32).local(8)>, !lowlp.global<512xf16>
  lowlp.return
}
