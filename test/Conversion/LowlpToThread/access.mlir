// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// What stands around a load or store: the test whether an element exists, addresses, and parts of bytes.

// CHECK-LABEL: gpu.func @guarded_load
// CHECK-SAME: %[[P:[a-z0-9]+]]: !simt.ptr<global>, %[[M:[a-z0-9]+]]: i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<2xf16>
// CHECK-DAG: %[[EXTENT:.*]] = arith.index_cast %[[M]] : i32 to index
// CHECK-DAG: %[[BLOCK:.*]] = gpu.block_id x
// CHECK-DAG: %[[THREAD:.*]] = gpu.thread_id x
// CHECK: %[[ROW:.*]] = arith.addi %[[BLOCK]], %[[THREAD]] : index
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %[[EXTENT]] : index
// CHECK: %[[V:.*]] = scf.if %[[INSIDE]] -> (vector<2xf16>) {
// CHECK:   %[[L:.*]] = simt.load %[[P]][%{{.*}}] align 4 : <global> -> vector<2xf16>
// CHECK:   scf.yield %[[L]]
// CHECK: } else {
// CHECK:   scf.yield %[[ZERO]]
// CHECK: scf.if %[[INSIDE]] {
// CHECK-NEXT: arith.muli
// CHECK-NEXT: simt.store %{{.*}}, %[[P]]
lowlp.kernel @guarded_load(%p: !lowlp.ptr<f16> {lowlp.align = 4 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %rows = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%rows, 2] : !lowlp.ptr<f16> -> !lowlp.global<?x2xf16>
  %t = lowlp.load_global %v[%b, %c0] : !lowlp.global<?x2xf16> -> !lowlp.tile<32x2xf16, spatial(32, 1).local(1, 2)>
  lowlp.store_global %t, %v[%b, %c0] : !lowlp.tile<32x2xf16, spatial(32, 1).local(1, 2)>, !lowlp.global<?x2xf16>
  lowlp.return
}

// Dynamic row-major strides are products of the extents to their right.
// CHECK-LABEL: gpu.func @row_major
// CHECK-DAG: %[[N:.*]] = arith.index_cast %arg1 : i32 to index
// CHECK-DAG: %[[PLANE:.*]] = arith.muli %[[N]], %{{c4.*}} : index
// CHECK: arith.muli %{{.*}}, %[[PLANE]] : index
// CHECK: simt.load
lowlp.kernel @row_major(%p: !lowlp.ptr<f32>, %n: i32)
    attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %rows = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [2, %rows, 4] : !lowlp.ptr<f32> -> !lowlp.global<2x?x4xf32>
  %t = lowlp.load_global %v[%b, %c0, %c0] in_bounds : !lowlp.global<2x?x4xf32>
    -> !lowlp.tile<8x4xf32, spatial(8, 4)>
  lowlp.store_global %t, %v[%b, %c0, %c0] in_bounds : !lowlp.tile<8x4xf32, spatial(8, 4)>, !lowlp.global<2x?x4xf32>
  lowlp.return
}

// The thread index has the digits (8, 4); the second one steps along columns.
// CHECK-LABEL: gpu.func @thread_digits
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK: %[[HIGH:.*]] = arith.divui %[[T]], %c4 : index
// CHECK: %[[LOW:.*]] = arith.remui %[[T]], %c4 : index
// CHECK: arith.muli %[[LOW]], %c8 : index
// CHECK: simt.assert
// CHECK: simt.load %{{.*}} align 4 : <global> -> f32
lowlp.kernel @thread_digits(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %t = lowlp.load_global %v[%b] in_bounds : !lowlp.global<32xf32>
    -> !lowlp.tile<32xf32, spatial(8, 4).permute(1, 0).reshape(32)>
  lowlp.store_global %t, %v[%b] in_bounds : !lowlp.tile<32xf32, spatial(8, 4).permute(1, 0).reshape(32)>,
      !lowlp.global<32xf32>
  lowlp.return
}

// A promise is asserted for the first and the last element of a group: 8 elements from %offset on, 63 in a row.
// CHECK-LABEL: gpu.func @promise
// CHECK-DAG: %[[C7:.*]] = arith.constant 7 : index
// CHECK-DAG: %[[C63:.*]] = arith.constant 63 : index
// CHECK: %[[OFFSET:.*]] = arith.muli
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[OFFSET]], %[[C63]] : index
// CHECK: %[[LAST:.*]] = arith.addi %[[OFFSET]], %[[C7]] : index
// CHECK: arith.cmpi ult, %[[LAST]], %[[C63]] : index
// CHECK: simt.assert %{{.*}}, "the access promises in_bounds, but an element lies outside of the view"
// CHECK-NOT: scf.if
// CHECK: simt.load %{{.*}} align 16 : <global> -> vector<8xf16>
// CHECK: simt.assert
// CHECK-NOT: scf.if
// CHECK: simt.store %{{.*}} align 16 : vector<8xf16>, <global>
lowlp.kernel @promise(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (7)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %b = lowlp.block_indices : index
  %offset = arith.muli %b, %c8 : index
  %v = lowlp.view_global %p shape [32, 63] strides [64, 1] : !lowlp.ptr<f16> -> !lowlp.global<32x63xf16>
  %t = lowlp.load_global %v[%c0, %offset] in_bounds : !lowlp.global<32x63xf16>
    -> !lowlp.tile<32x8xf16, spatial(32, 1).local(1, 8)>
  lowlp.store_global %t, %v[%c0, %offset] in_bounds : !lowlp.tile<32x8xf16, spatial(32, 1).local(1, 8)>,
      !lowlp.global<32x63xf16>
  lowlp.return
}

// 8 threads hold each element; the first of them stores it, all of them load it.
// CHECK-LABEL: gpu.func @replicas
// CHECK: %[[T:.*]] = gpu.thread_id x
// CHECK: simt.assert
// CHECK-NOT: scf.if
// CHECK: simt.load %{{.*}} -> bf16
// CHECK: %[[REPLICA:.*]] = arith.divui %[[T]], %c4 : index
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[REPLICA]], %c0 : index
// CHECK: scf.if %[[FIRST]] {
// CHECK: simt.store
lowlp.kernel @replicas(%p: !lowlp.ptr<bf16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [4] : !lowlp.ptr<bf16> -> !lowlp.global<4xbf16>
  %t = lowlp.load_global %v[%b] in_bounds : !lowlp.global<4xbf16>
      -> !lowlp.tile<4xbf16, reduce(spatial(8, 4), dims=[0])>
  lowlp.store_global %t, %v[%b] in_bounds : !lowlp.tile<4xbf16, reduce(spatial(8, 4), dims=[0])>, !lowlp.global<4xbf16>
  lowlp.return
}

// A code of 2 bits never leaves its byte: one load, a shift by its place, a mask.
// CHECK-LABEL: gpu.func @load_2_bits
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i64
// CHECK-DAG: %[[C7:.*]] = arith.constant 7 : i64
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i64
// CHECK-DAG: %[[MASK:.*]] = arith.constant 3 : i32
// CHECK: %[[BIT:.*]] = arith.muli %{{.*}}, %[[C2]] : i64
// CHECK: %[[PLACE:.*]] = arith.andi %[[BIT]], %[[C7]] : i64
// CHECK: %[[SHIFT:.*]] = arith.trunci %[[PLACE]] : i64 to i32
// CHECK: %[[OFFSET:.*]] = arith.shrui %[[BIT]], %[[C3]] : i64
// CHECK: %[[BYTE:.*]] = simt.load %{{.*}}[%[[OFFSET]]] align 1 : <global> -> i8
// CHECK: %[[WIDE:.*]] = arith.extui %[[BYTE]] : i8 to i32
// CHECK: %[[CODE:.*]] = arith.shrui %[[WIDE]], %[[SHIFT]] : i32
// CHECK: arith.andi %[[CODE]], %[[MASK]] : i32
// CHECK-NOT: simt.load
lowlp.kernel @load_2_bits(%p: !lowlp.ptr<ui2>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<ui2> -> !lowlp.global<32xui2>
  %t = lowlp.load_global %v[%b] : !lowlp.global<32xui2> -> !lowlp.tile<32xui2, spatial(32)>
  lowlp.store_global %t, %v[%b] in_bounds : !lowlp.tile<32xui2, spatial(32)>, !lowlp.global<32xui2>
  lowlp.return
}

// CHECK-LABEL: gpu.func @load_1_and_4_bits
// CHECK: arith.constant 1 : i32
// CHECK-COUNT-2: simt.load %{{.*}} align 1 : <global> -> i8
// CHECK-NOT: simt.load
lowlp.kernel @load_1_and_4_bits(%p: !lowlp.ptr<si1>, %q: !lowlp.ptr<f4E2M1FN>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si1> -> !lowlp.global<32xsi1>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f4E2M1FN> -> !lowlp.global<32xf4E2M1FN>
  %s = lowlp.load_global %v[%b] : !lowlp.global<32xsi1> -> !lowlp.tile<32xsi1, spatial(32)>
  %t = lowlp.load_global %w[%b] : !lowlp.global<32xf4E2M1FN> -> !lowlp.tile<32xf4E2M1FN, spatial(32)>
  lowlp.store_global %s, %v[%b] in_bounds : !lowlp.tile<32xsi1, spatial(32)>, !lowlp.global<32xsi1>
  lowlp.store_global %t, %w[%b] in_bounds : !lowlp.tile<32xf4E2M1FN, spatial(32)>, !lowlp.global<32xf4E2M1FN>
  lowlp.return
}

// A code of 6 bits may begin in one byte and end in the next, which is where its last bit lies.
// CHECK-LABEL: gpu.func @load_6_bits
// CHECK: %[[BIT:.*]] = arith.muli %{{.*}}, %c6_i64 : i64
// CHECK: %[[LOW:.*]] = simt.load %{{.*}} align 1 : <global> -> i8
// CHECK: %[[LAST:.*]] = arith.addi %[[BIT]], %c5_i64 : i64
// CHECK: %[[OFFSET:.*]] = arith.shrui %[[LAST]], %c3_i64 : i64
// CHECK: %[[HIGH:.*]] = simt.load %{{.*}}[%[[OFFSET]]] align 1 : <global> -> i8
// CHECK: arith.shli %{{.*}}, %c8_i32 : i32
// CHECK: arith.ori
// CHECK: arith.shrui
// CHECK: arith.andi %{{.*}}, %c63_i32 : i32
// CHECK-NOT: simt.load
lowlp.kernel @load_6_bits(%p: !lowlp.ptr<si6>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si6> -> !lowlp.global<32xsi6>
  %t = lowlp.load_global %v[%b] : !lowlp.global<32xsi6> -> !lowlp.tile<32xsi6, spatial(32)>
  lowlp.store_global %t, %v[%b] in_bounds : !lowlp.tile<32xsi6, spatial(32)>, !lowlp.global<32xsi6>
  lowlp.return
}

// 3, 5 and 7 bits likewise.
// CHECK-LABEL: gpu.func @load_odd_bits
// CHECK-COUNT-6: simt.load %{{.*}} align 1 : <global> -> i8
// CHECK-NOT: simt.load
lowlp.kernel @load_odd_bits(%p: !lowlp.ptr<ui3>, %q: !lowlp.ptr<!lowlp.float<e2m2>>, %r: !lowlp.ptr<ui7>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %u = lowlp.view_global %p shape [32] : !lowlp.ptr<ui3> -> !lowlp.global<32xui3>
  %v = lowlp.view_global %q shape [32] : !lowlp.ptr<!lowlp.float<e2m2>> -> !lowlp.global<32x!lowlp.float<e2m2>>
  %w = lowlp.view_global %r shape [32] : !lowlp.ptr<ui7> -> !lowlp.global<32xui7>
  %1 = lowlp.load_global %u[%b] : !lowlp.global<32xui3> -> !lowlp.tile<32xui3, spatial(32)>
  %2 = lowlp.load_global %v[%b] : !lowlp.global<32x!lowlp.float<e2m2>>
      -> !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>
  %3 = lowlp.load_global %w[%b] : !lowlp.global<32xui7> -> !lowlp.tile<32xui7, spatial(32)>
  lowlp.store_global %1, %u[%b] in_bounds : !lowlp.tile<32xui3, spatial(32)>, !lowlp.global<32xui3>
  lowlp.store_global %2, %v[%b] in_bounds : !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>,
      !lowlp.global<32x!lowlp.float<e2m2>>
  lowlp.store_global %3, %w[%b] in_bounds : !lowlp.tile<32xui7, spatial(32)>, !lowlp.global<32xui7>
  lowlp.return
}

// 8 codes of 4 bits are a word that is loaded as it is; a code is a shift and a mask away.
// CHECK-LABEL: gpu.func @load_words
// CHECK: %[[W:.*]] = simt.load %{{.*}} align 4 : <global> -> i32
// CHECK: arith.andi %[[W]], %c15_i32 : i32
// CHECK: arith.shrui %[[W]], %c4_i32 : i32
// CHECK: arith.shrui %[[W]], %c28_i32 : i32
lowlp.kernel @load_words(%p: !lowlp.ptr<ui4> {lowlp.align = 4 : i64}, %out: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256] : !lowlp.ptr<ui4> -> !lowlp.global<256xui4>
  %t = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<256xui4> -> !lowlp.tile<256xui4, spatial(32).local(8)>
  %c = lowlp.cast %t : !lowlp.tile<256xui4, spatial(32).local(8)> -> !lowlp.tile<256xui8, spatial(32).local(8)>
  %w = lowlp.view_global %out shape [256] : !lowlp.ptr<ui8> -> !lowlp.global<256xui8>
  lowlp.store_global %c, %w[%c0] : !lowlp.tile<256xui8, spatial(32).local(8)>, !lowlp.global<256xui8>
  lowlp.return
}

// A code of 4 bits: clear its bits of the word, then set them. It never crosses a word.
// CHECK-LABEL: gpu.func @store_4_bits
// CHECK: %[[BIT:.*]] = arith.muli %{{.*}}, %c4_i64 : i64
// CHECK: %[[PLACE:.*]] = arith.andi %[[BIT]], %c31_i64 : i64
// CHECK: %[[WORD:.*]] = arith.shrui %[[BIT]], %c5_i64 : i64
// CHECK: %[[OFFSET:.*]] = arith.muli %[[WORD]], %c4_i64 : i64
// CHECK: %[[MASK:.*]] = arith.shli %c15_i64, %[[PLACE]] : i64
// CHECK: %[[BITS:.*]] = arith.shli %{{.*}}, %[[PLACE]] : i64
// CHECK: %[[MASK32:.*]] = arith.trunci %[[MASK]] : i64 to i32
// CHECK: %[[BITS32:.*]] = arith.trunci %[[BITS]] : i64 to i32
// CHECK: %[[KEEP:.*]] = arith.xori %[[MASK32]], %c-1_i32 : i32
// CHECK: simt.atomic_rmw and %[[KEEP]], %{{.*}}[%[[OFFSET]]] : i32, <global>
// CHECK: simt.atomic_rmw or %[[BITS32]], %{{.*}}[%[[OFFSET]]] : i32, <global>
// CHECK-NOT: simt.atomic_rmw
lowlp.kernel @store_4_bits(%p: !lowlp.ptr<si4>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %s = lowlp.splat %x : f32 -> !lowlp.tile<32xf32, spatial(32)>
  %t = lowlp.cast %s : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32xsi4, spatial(32)>
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si4> -> !lowlp.global<32xsi4>
  lowlp.store_global %t, %v[%b] : !lowlp.tile<32xsi4, spatial(32)>, !lowlp.global<32xsi4>
  lowlp.return
}

// A code of 5 bits may cross into the next word, 4 bytes on; the bits beyond 32 tell whether it does.
// CHECK-LABEL: gpu.func @store_5_bits
// CHECK: %[[MASK:.*]] = arith.shli %c31_i64, %{{.*}} : i64
// CHECK: simt.atomic_rmw and
// CHECK: simt.atomic_rmw or
// CHECK: %[[HIGH:.*]] = arith.shrui %[[MASK]], %c32_i64 : i64
// CHECK: %[[HIGH32:.*]] = arith.trunci %[[HIGH]] : i64 to i32
// CHECK: %[[CROSSES:.*]] = arith.cmpi ne, %[[HIGH32]], %c0_i32 : i32
// CHECK: scf.if %[[CROSSES]] {
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %c4_i64 : i64
// CHECK: simt.atomic_rmw and %{{.*}}[%[[NEXT]]] : i32, <global>
// CHECK: simt.atomic_rmw or %{{.*}}[%[[NEXT]]] : i32, <global>
lowlp.kernel @store_5_bits(%p: !lowlp.ptr<ui5>, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %s = lowlp.splat %x : f32 -> !lowlp.tile<32xf32, spatial(32)>
  %t = lowlp.cast %s : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32xui5, spatial(32)>
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<ui5> -> !lowlp.global<32xui5>
  lowlp.store_global %t, %v[%b] : !lowlp.tile<32xui5, spatial(32)>, !lowlp.global<32xui5>
  lowlp.return
}

// Codes of 8 bits are bytes: no atomics.
// CHECK-LABEL: gpu.func @store_8_bits
// CHECK-NOT: simt.atomic_rmw
// CHECK: simt.store %{{.*}} align 1 : i8, <global>
// CHECK: simt.store %{{.*}} align 2 : i16, <global>
// CHECK: simt.store %{{.*}} align 8 : vector<2xi32>, <global>
lowlp.kernel @store_8_bits(%p: !lowlp.ptr<f8E4M3FN> {lowlp.align = 8 : i64}, %x: f32)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256] : !lowlp.ptr<f8E4M3FN> -> !lowlp.global<256xf8E4M3FN>
  %s1 = lowlp.splat %x : f32 -> !lowlp.tile<32xf32, spatial(32)>
  %t1 = lowlp.cast %s1 : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32xf8E4M3FN, spatial(32)>
  lowlp.store_global %t1, %v[%c0] : !lowlp.tile<32xf8E4M3FN, spatial(32)>, !lowlp.global<256xf8E4M3FN>
  %s2 = lowlp.splat %x : f32 -> !lowlp.tile<64xf32, spatial(32).local(2)>
  %t2 = lowlp.cast %s2 : !lowlp.tile<64xf32, spatial(32).local(2)> -> !lowlp.tile<64xf8E4M3FN, spatial(32).local(2)>
  lowlp.store_global %t2, %v[%c0] : !lowlp.tile<64xf8E4M3FN, spatial(32).local(2)>, !lowlp.global<256xf8E4M3FN>
  %s8 = lowlp.splat %x : f32 -> !lowlp.tile<256xf32, spatial(32).local(8)>
  %t8 = lowlp.cast %s8 : !lowlp.tile<256xf32, spatial(32).local(8)> -> !lowlp.tile<256xf8E4M3FN, spatial(32).local(8)>
  lowlp.store_global %t8, %v[%c0] : !lowlp.tile<256xf8E4M3FN, spatial(32).local(8)>, !lowlp.global<256xf8E4M3FN>
  lowlp.return
}
