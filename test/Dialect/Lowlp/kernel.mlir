// RUN: lowlp-opt %s --split-input-file --verify-roundtrip | FileCheck %s

// Parameters of every kind, their names and promises.

// CHECK: lowlp.kernel @parameters(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "x"},
// CHECK-SAME: %{{.*}}: !lowlp.ptr<si6>, %m: i32 {lowlp.divisible_by = 8 : i64, lowlp.name = "m"},
// CHECK-SAME: %{{.*}}: i64, %{{.*}}: f32) attributes {grid = affine_map<(d0, d1) -> (d0 ceildiv 16, d1, 4)>, num_threads = 1024 : i64}
lowlp.kernel @parameters(%x: !lowlp.ptr<f16> {lowlp.name = "x", lowlp.align = 16 : i64}, %w: !lowlp.ptr<si6>,
                         %m: i32 {lowlp.name = "m", lowlp.divisible_by = 8 : i64}, %n: i64, %scale: f32)
    attributes {grid = affine_map<(m, n) -> (m ceildiv 16, n, 4)>, num_threads = 1024 : i64} {
  // CHECK: lowlp.block_indices : index, index, index
  %indices:3 = lowlp.block_indices : index, index, index
  lowlp.return
}

// -----

// CHECK-LABEL: lowlp.kernel private @smallest()
lowlp.kernel private @smallest() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}
