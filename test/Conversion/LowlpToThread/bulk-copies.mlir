// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse --split-input-file | FileCheck %s

// The first thread copies row by row.
// CHECK-LABEL: gpu.func @rows
// CHECK-DAG: %[[S:.*]] = simt.shared_memory 0 : <shared>
// CHECK-DAG: %[[B:.*]] = simt.shared_memory 2048 : <shared>
// CHECK: scf.if %{{.*}} {
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: simt.assert %{{.*}}, "a bulk copy takes whole rows, but an element lies outside of the view"
// CHECK: simt.copy_bulk %arg0[%{{.*}}] to %[[S]][%{{.*}}] bytes 128 signals %[[B]][%{{.*}}] : <global> to <shared>, <shared>
// CHECK: scf.if %{{.*}} {
// CHECK: scf.for
// CHECK: simt.copy_bulk_to_global %[[S]][%{{.*}}] to %arg1[%{{.*}}] bytes 128 : <shared> to <global>
// CHECK: simt.copy_bulk_commit
// CHECK: simt.copy_bulk_wait 0 read
lowlp.kernel @rows(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %rows = arith.index_cast %m : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [%rows, 256] : !lowlp.ptr<f16> -> !lowlp.global<?x256xf16>
  %w = lowlp.view_global %q shape [%rows, 256] : !lowlp.ptr<f16> -> !lowlp.global<?x256xf16>
  lowlp.copy_bulk %v[%c0, %c0] to %s[%c0, %c0] shape [16, 64] signals %b[%c0]
    : !lowlp.global<?x256xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
  lowlp.copy_bulk_to_global %s[%c0, %c0] to %w[%c0, %c0] shape [16, 64]
    : !lowlp.shared<16x64xf16> to !lowlp.global<?x256xf16>
  lowlp.copy_bulk_commit
  lowlp.copy_bulk_wait 0 read
  lowlp.return
}

// -----

// Only what is written through is marked so.
// CHECK: lowlp.parameters = [{align = 16 : i64, name = "arg0", type = !lowlp.ptr<f16>}, {align = 16 : i64, name = "arg1", type = !lowlp.ptr<f16>, written}]
lowlp.kernel @written(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<64xf16>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  lowlp.copy_bulk_to_global %s[%c0] to %w[%c0] shape [64] : !lowlp.shared<64xf16> to !lowlp.global<64xf16>
  lowlp.return
}

// -----

// The map is an argument after the parameters; two copies of one view and box share it. The tile begins at a multiple
// of 1024 bytes.
// CHECK-LABEL: gpu.func @tensor
// CHECK-SAME: %[[P:.*]]: !simt.ptr<global>, %{{.*}}: i32, %{{.*}}: i32, %[[MAP:.*]]: !simt.tensor_map) kernel
// CHECK-SAME: lowlp.tensor_maps = [{box = array<i64: 16, 64>, element_bytes = 2 : i64, extents = affine_map<(d0, d1) -> (d0, d1)>, parameter = 0 : i64, strides = affine_map<(d0, d1) -> (d1 * 2)>, swizzle = 128 : i64}]
// CHECK-DAG: %[[S:.*]] = simt.shared_memory 1024 : <shared>
// CHECK: simt.copy_tensor %[[MAP]] of %[[P]] extents[%{{.*}}, %{{.*}}] strides[%{{.*}}] at[%{{.*}}, %{{.*}}] to %[[S]][%{{.*}}] box [16, 64] element_bytes 2 swizzle 128 signals
// CHECK: simt.copy_tensor %[[MAP]] of %[[P]]
!shared = !lowlp.shared<2x16x64xf16, local(2, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
lowlp.kernel @tensor(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32, %k: i32)
    attributes {grid = affine_map<(m, k) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %before = lowlp.alloc_shared : !lowlp.shared<8xsi8>
  %s = lowlp.alloc_shared : !shared
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [%rows, %columns] : !lowlp.ptr<f16> -> !lowlp.global<?x?xf16>
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [16, 64] signals %b[%c0]
    : !lowlp.global<?x?xf16> to !shared, !lowlp.mbarriers<1>
  lowlp.copy_tensor %v[%c0, %c64] to %s[%c1, %c0, %c0] shape [16, 64] signals %b[%c0]
    : !lowlp.global<?x?xf16> to !shared, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

// A row of 448 elements goes in 7 pieces of 64, as a box of 224 would not begin at a
// multiple of 128 bytes.
// CHECK-LABEL: gpu.func @long_row
// CHECK-SAME: box = array<i64: 1, 64>
// CHECK-COUNT-14: simt.copy_tensor %{{.*}} box [1, 64] element_bytes 2 swizzle 0 signals
// CHECK-NOT: simt.copy_tensor
lowlp.kernel @long_row(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<2x448xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 1024] : !lowlp.ptr<f16> -> !lowlp.global<64x1024xf16>
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0] shape [2, 448] signals %b[%c0]
    : !lowlp.global<64x1024xf16> to !lowlp.shared<2x448xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

// Whole rows that a box does not hold are copied at once by a map whose rows are parts of these.
// CHECK-LABEL: gpu.func @whole_rows
// CHECK-SAME: box = array<i64: 3, 1, 2, 208>, element_bytes = 4 : i64, extents = affine_map<() -> (64, 5, 2, 208)>, parameter = 0 : i64, strides = affine_map<() -> (8320, 1664, 832)>, swizzle = 0
// CHECK: simt.copy_tensor %{{.*}} extents[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] strides[%{{.*}}, %{{.*}}, %{{.*}}] at[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] to %{{.*}} box [3, 1, 2, 208] element_bytes 4 swizzle 0 signals
// CHECK-NOT: simt.copy_tensor
lowlp.kernel @whole_rows(%p: !lowlp.ptr<ui32> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = lowlp.alloc_shared : !lowlp.shared<3x1x416xui32>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 5, 416] : !lowlp.ptr<ui32> -> !lowlp.global<64x5x416xui32>
  lowlp.copy_tensor %v[%c1, %c1, %c0] to %s[%c0, %c0, %c0] shape [3, 1, 416] signals %b[%c0]
    : !lowlp.global<64x5x416xui32> to !lowlp.shared<3x1x416xui32>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

// Rows of 256 bytes with a swizzle are two panels of 128, one after the other.
// CHECK-LABEL: gpu.func @panels
// CHECK-SAME: box = array<i64: 16, 64>, {{.*}}swizzle = 128
// CHECK: %[[SECOND:.*]] = arith.constant 2048 : i64
// CHECK: simt.copy_tensor {{.*}} at[%[[ROW:.*]], %[[COLUMN:.*]]] to %[[S:.*]][%[[AT:.*]]] box [16, 64] element_bytes 2 swizzle 128 signals
// CHECK: simt.copy_tensor {{.*}} at[%[[ROW]], %{{.*}}] to %[[S]][%[[SECOND]]] box [16, 64] element_bytes 2 swizzle 128 signals
lowlp.kernel @panels(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<16x128xf16, local(1, 2).swizzle(local(16, 8), dim=1).local(1, 8)>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 1024] : !lowlp.ptr<f16> -> !lowlp.global<64x1024xf16>
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0] shape [16, 128] signals %b[%c0]
    : !lowlp.global<64x1024xf16> to !lowlp.shared<16x128xf16, local(1, 2).swizzle(local(16, 8), dim=1).local(1, 8)>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

// Parts smaller than 128 bytes may lie beyond a dimension whose offset is 0.
// CHECK-LABEL: gpu.func @apart
// CHECK: simt.copy_tensor
lowlp.kernel @apart(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %i = lowlp.block_indices : index
  %s = lowlp.alloc_shared : !lowlp.shared<2x4x16xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  lowlp.copy_tensor %v[%c0] to %s[%i, %c0, %c0] shape [16] signals %b[%c0]
    : !lowlp.global<64xf16> to !lowlp.shared<2x4x16xf16>, !lowlp.mbarriers<1>
  lowlp.return
}
