// RUN: lowlp-opt %s --split-input-file --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Two steps of K = 16 along rows of 64 bytes, of a stage that is known at run time. Stages take 1024 bytes, steps 32.
!a = !lowlp.tile<64x32xf16, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!c = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<3x16x32xf16, local(3, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>
// CHECK-LABEL: gpu.func @product
// CHECK-SAME: lowlp.shared_bytes = 3072
lowlp.kernel @product(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %stage = arith.index_cast %n : i32 to index
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f32
  %a = lowlp.splat %one : f16 -> !a
  %c = lowlp.splat %zero : f32 -> !c
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[B:.*]] = simt.shared_memory 0
  // CHECK: simt.assert %{{.*}} "a product takes what lies in the shared tile, but the part of b reaches beyond"
  // CHECK: %[[F:.*]]:2 = simt.wgmma_fence of %{{.*}}, %{{.*}} : vector<16xf16>, vector<8xf32>
  // CHECK: %[[POSITION:.*]] = arith.muli %{{.*}}, %c512 : index
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[POSITION]]
  // CHECK: %[[BYTE:.*]] = arith.muli %[[WIDE]], %c2_i64
  // CHECK: %[[A0:.*]] = vector.extract_strided_slice %[[F]]#0 {offsets = [0], sizes = [8], strides = [1]}
  // CHECK: %[[S0:.*]] = simt.wgmma %[[A0]], %[[B]][%[[BYTE]]] swizzle 64 leading 16 stride 512 plus %[[F]]#1 : vector<8xf32>
  // CHECK: %[[A1:.*]] = vector.extract_strided_slice %[[F]]#0 {offsets = [8], sizes = [8], strides = [1]}
  // CHECK: %[[S1:.*]] = simt.wgmma %[[A1]], %[[B]][%{{.*}}] swizzle 64 leading 16 stride 512 plus %[[S0]] : !simt.accumulators<vector<8xf32>>
  %s = lowlp.wgmma %a, %b[%stage, %c0, %c0] plus %c : !c : !a, !b -> !accumulators
  // CHECK: simt.wgmma_commit
  lowlp.wgmma_commit
  // CHECK: simt.wgmma_wait 0 takes %[[S1]] : (!simt.accumulators<vector<8xf32>>) -> vector<8xf32>
  %d = lowlp.wgmma_wait 0 takes %s : (!accumulators) -> !c
  lowlp.return
}

// -----

// Warps of 32 rows: each step is two instructions, which take rows 0 to 15 and 16 to 31 of each warp, and accumulators of their
// own. After the wait they are one tile.
!f = !lowlp.tile<128x32xf32, spatial(4, 1).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!a = !lowlp.tile<128x32xf16, spatial(4, 1).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!c = !lowlp.tile<128x16xf32, spatial(4, 1).local(2, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<128x16xf32, spatial(4, 1).local(2, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<16x32xf16, swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>
// CHECK-LABEL: gpu.func @parts
lowlp.kernel @parts(%x: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %f = lowlp.splat %x : f32 -> !f
  %a = lowlp.cast %f : !f -> !a
  %c = lowlp.splat %zero : f32 -> !c
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[F:.*]]:3 = simt.wgmma_fence of %{{.*}} : vector<32xf16>, vector<8xf32>, vector<8xf32>
  // CHECK: %[[A00:.*]] = vector.extract_strided_slice %[[F]]#0 {offsets = [0], sizes = [8], strides = [1]}
  // CHECK: %[[S00:.*]] = simt.wgmma %[[A00]], %{{.*}}[%c0_i64] {{.*}} plus %[[F]]#1
  // CHECK: %[[A10:.*]] = vector.extract_strided_slice %[[F]]#0 {offsets = [16], sizes = [8], strides = [1]}
  // CHECK: %[[S10:.*]] = simt.wgmma %[[A10]], %{{.*}}[%c0_i64] {{.*}} plus %[[F]]#2
  // CHECK: %[[A01:.*]] = vector.extract_strided_slice %[[F]]#0 {offsets = [8], sizes = [8], strides = [1]}
  // CHECK: %[[S01:.*]] = simt.wgmma %[[A01]], %{{.*}}[%c32_i64] {{.*}} plus %[[S00]]
  // CHECK: %[[A11:.*]] = vector.extract_strided_slice %[[F]]#0 {offsets = [24], sizes = [8], strides = [1]}
  // CHECK: %[[S11:.*]] = simt.wgmma %[[A11]], %{{.*}}[%c32_i64] {{.*}} plus %[[S10]]
  %s = lowlp.wgmma %a, %b[%c0, %c0] plus %c : !c : !a, !b -> !accumulators
  lowlp.wgmma_commit
  // CHECK: %[[D:.*]]:2 = simt.wgmma_wait 0 takes %[[S01]], %[[S11]]
  // CHECK: vector.extract %[[D]]#0[0]
  // CHECK: vector.extract %[[D]]#1[7]
  %d = lowlp.wgmma_wait 0 takes %s : (!accumulators) -> !c
  lowlp.print_tile "d", %d : !c
  lowlp.return
}

// -----

// Accumulators that begin with nothing pass through no fence. Loops carry them as they are.
!f = !lowlp.tile<64x32xf32, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 4)>
!a = !lowlp.tile<64x32xsi8, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 4)>
!c = !lowlp.tile<64x8xsi32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x8xsi32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<8x64xui8, local(1, 4).local(8, 16)>
// CHECK-LABEL: gpu.func @loop
lowlp.kernel @loop(%x: f32) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %f = lowlp.splat %x : f32 -> !f
  %q = lowlp.cast %f : !f -> !a
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[F:.*]] = simt.wgmma_fence of %{{.*}} : vector<4xi32>
  // CHECK: %[[S:.*]] = simt.wgmma %[[F]] as si8, %[[B:.*]][%c0_i64] as ui8 swizzle 0 leading 128 stride 128 : vector<4xi32>, <shared> -> <vector<4xi32>>
  %s = lowlp.wgmma %q, %b[%c0, %c0] : !a, !b -> !accumulators
  // CHECK: %[[L:.*]] = scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %[[S]]) -> (!simt.accumulators<vector<4xi32>>)
  // CHECK: %[[T:.*]] = simt.wgmma %{{.*}} as si8, %[[B]][%c256_i64] as ui8 {{.*}} plus %[[CARRIED]]
  // CHECK: scf.yield %[[T]]
  %l = scf.for %i = %c0 to %c4 step %c1 iter_args(%carried = %s) -> (!accumulators) {
    %t = lowlp.wgmma %q, %b[%c0, %c32] plus %carried : !accumulators : !a, !b -> !accumulators
    scf.yield %t : !accumulators
  }
  lowlp.wgmma_commit
  // CHECK: simt.wgmma_wait 0 takes %[[L]]
  %d = lowlp.wgmma_wait 0 takes %l : (!accumulators) -> !c
  lowlp.return
}

// -----

// Registers in another order than the instruction's are brought into it, and back.
!a = !lowlp.tile<64x16xbf16, spatial(4, 1).local(2, 2).spatial(8, 4).local(1, 2)>
!c = !lowlp.tile<64x16xf32, spatial(4, 1).local(2, 2).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x16xf32, spatial(4, 1).local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<16x16xbf16, swizzle(local(16, 2), dim=1, log_step=2).local(1, 8)>
// CHECK-LABEL: gpu.func @order
lowlp.kernel @order(%x: f32, %y: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %f = lowlp.splat %x : f32 -> !lowlp.tile<64x16xf32, spatial(4, 1).local(2, 2).spatial(8, 4).local(1, 2)>
  %a = lowlp.cast %f : !lowlp.tile<64x16xf32, spatial(4, 1).local(2, 2).spatial(8, 4).local(1, 2)> -> !a
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[F:.*]] = simt.wgmma_fence of
  // CHECK: vector.shuffle %[[F]], %[[F]] [0, 1, 4, 5, 2, 3, 6, 7]
  %s = lowlp.wgmma %a, %b[%c0, %c0] : !a, !b -> !accumulators
  lowlp.wgmma_commit
  // CHECK: %[[D:.*]] = simt.wgmma_wait 0
  // CHECK: vector.extract %[[D]][0]
  // CHECK-NEXT: vector.extract %[[D]][1]
  // CHECK-NEXT: vector.extract %[[D]][4]
  // CHECK-NEXT: vector.extract %[[D]][5]
  %d = lowlp.wgmma_wait 0 takes %s : (!accumulators) -> !c
  %view = lowlp.view_global %y shape [64, 16] : !lowlp.ptr<f32> -> !lowlp.global<64x16xf32>
  lowlp.store_global %d, %view[%c0, %c0] : !c, !lowlp.global<64x16xf32>
  lowlp.return
}

// -----

// The pattern of a swizzle begins at a multiple of 1024 bytes.
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x8xf32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<8x64xf16, swizzle(local(8, 8), dim=1).local(1, 8)>
// CHECK-LABEL: gpu.func @alignment
// CHECK-SAME: lowlp.shared_bytes = 2048
lowlp.kernel @alignment() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %t = lowlp.splat %one : f16 -> !a
  // CHECK: simt.shared_memory 1024
  %before = lowlp.alloc_shared : !lowlp.shared<5xf32>
  %b = lowlp.alloc_shared : !b
  %s = lowlp.wgmma %t, %b[%c0, %c0] : !a, !b -> !accumulators
  lowlp.return
}

// -----

// Bits: two steps of 8 words, 32 bytes, of rows of 64.
!words = !lowlp.tile<4x2x32x4xui32, spatial(4, 1, 1, 1).local(1, 2, 1, 1).spatial(1, 1, 32, 1).local(1, 1, 1, 4)>
!a = !lowlp.tile<64x512xui1, spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 32)>
!accumulators = !lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<2x16x16xui32, local(2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 4)>
// CHECK-LABEL: gpu.func @bits
lowlp.kernel @bits(%p: !lowlp.ptr<ui32>, %n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %stage = arith.index_cast %n : i32 to index
  %v = lowlp.view_global %p shape [4, 2, 32, 4] : !lowlp.ptr<ui32> -> !lowlp.global<4x2x32x4xui32>
  %w = lowlp.load_global %v[%c0, %c0, %c0, %c0] : !lowlp.global<4x2x32x4xui32> -> !words
  %a = lowlp.view %w : !words -> !a
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[F:.*]] = simt.wgmma_fence of %{{.*}} : vector<8xi32>
  // CHECK: %[[POSITION:.*]] = arith.muli %{{.*}}, %c256 : index
  // CHECK: %[[WIDE:.*]] = arith.index_cast %[[POSITION]]
  // CHECK: %[[BYTE:.*]] = arith.muli %[[WIDE]], %c4_i64
  // CHECK: %[[S:.*]] = simt.wgmma %{{.*}} as ui1, %{{.*}}[%[[BYTE]]] as ui1 swizzle 64 leading 16 stride 512 : vector<4xi32>
  // CHECK: %[[NEXT:.*]] = arith.addi %[[BYTE]], %c32_i64
  // CHECK: simt.wgmma %{{.*}} as ui1, %{{.*}}[%[[NEXT]]] as ui1 swizzle 64 leading 16 stride 512 plus %[[S]]
  %s = lowlp.wgmma %a, %b[%stage, %c0, %c0] : !a, !b -> !accumulators
  lowlp.wgmma_commit
  %d = lowlp.wgmma_wait 0 takes %s : (!accumulators) -> !lowlp.tile<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  lowlp.return
}

// -----

// Two slices of K, a warpgroup each, which is known by a ballot: the second takes b from the place after, with the same registers.
!a = !lowlp.tile<64x64xf16, spatial(1, 2).spatial(4, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<128x16xf32, spatial(8, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<4x16x32xf16, local(4, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>
// CHECK-LABEL: gpu.func @slices
lowlp.kernel @slices() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[OWN:.*]] = arith.divui %{{.*}}, %c128_i32
  // CHECK: %[[BIT:.*]] = arith.andi %[[OWN]], %c1_i32
  // CHECK: %[[HAS:.*]] = arith.cmpi ne, %[[BIT]], %c0_i32
  // CHECK: %[[LANES:.*]] = simt.ballot %[[HAS]]
  // CHECK: %[[SLICE:.*]] = arith.andi %[[LANES]], %c1_i32
  // CHECK: %[[NUMBER:.*]] = arith.index_castui %[[SLICE]]
  // CHECK: %[[PLACE:.*]] = arith.addi %[[NUMBER]], %c1
  // CHECK: %[[POSITION:.*]] = arith.muli %[[PLACE]], %c512
  // CHECK-COUNT-2: simt.wgmma %{{.*}} swizzle 64 leading 16 stride 512
  // CHECK-NOT: simt.wgmma %
  %s = lowlp.wgmma %a, %b[%c1, %c0, %c0] : !a, !b -> !accumulators
  lowlp.wgmma_commit
  lowlp.return
}
