// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-to-thread

!a = !lowlp.tile<64x16xf16, spatial(4, 1).local(2, 4).spatial(8, 4)>
!accumulators = !lowlp.accumulators<64x8xf32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<8x16xf16, local(1, 2).local(8, 8)>
lowlp.kernel @layout_of_a() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.alloc_shared : !b
  // expected-error @below {{'lowlp.wgmma' op the layout of a, 'spatial(4, 1).local(2, 4).spatial(8, 4)', is not made of fragments of 'column_local(2, 2).spatial(8, 4).local(1, 2)'}}
  %s = lowlp.wgmma %a, %b[%c0, %c0] : !a, !b -> !accumulators
  lowlp.return
}

// -----

// Each warp has 8 columns of 32 rows.
!a = !lowlp.tile<64x16xf16, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x16xf32, spatial(2, 2).local(4, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<16x16xf16, local(2, 2).local(8, 8)>
lowlp.kernel @layout_of_accumulators() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.alloc_shared : !b
  // expected-error @below {{'lowlp.wgmma' op the layout of the accumulators, 'spatial(2, 2).local(4, 1).spatial(8, 4).local(1, 2)', does not give each warp all columns of 16 rows in fragments of 'local(2, 1).spatial(8, 4).local(1, 2)', in one order in all warps}}
  %s = lowlp.wgmma %a, %b[%c0, %c0] : !a, !b -> !accumulators
  lowlp.return
}

// -----

// The warps have other rows of a than of the accumulators.
!a = !lowlp.tile<64x16xf16, column_local(2, 2).spatial(4, 1).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x8xf32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<8x16xf16, local(1, 2).local(8, 8)>
lowlp.kernel @rows_of_a() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.alloc_shared : !b
  // expected-error @below {{'lowlp.wgmma' op a warp needs rows 0 to 7 and columns 0 to 7 of a for its rows of the accumulators, in one register in all warps}}
  %s = lowlp.wgmma %a, %b[%c0, %c0] : !a, !b -> !accumulators
  lowlp.return
}

// -----

// Each warp has rows of both slices of K, and can take b of one alone.
!a = !lowlp.tile<128x32xf16, spatial(8, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<256x8xf32, local(2, 1).spatial(8, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<2x8x16xf16, local(2, 1, 2).local(1, 8, 8)>
lowlp.kernel @warps_of_slices() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.alloc_shared : !b
  // expected-error @below {{'lowlp.wgmma' op warp 4 must have accumulators of slice 1 of K, but has some of slice 0}}
  %s = lowlp.wgmma %a, %b[%c0, %c0, %c0] : !a, !b -> !accumulators
  lowlp.return
}
