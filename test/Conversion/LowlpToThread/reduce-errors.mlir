// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-to-thread

!tile = !lowlp.tile<64xf32, spatial(64)>
!sum = !lowlp.tile<1xf32, reduce(spatial(64), dims=[0])>
lowlp.kernel @two_warps() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %one = arith.constant 1.0 : f32
  %x = lowlp.splat %one : f32 -> !tile
  // expected-error @below {{'lowlp.reduce' op dimension 0 of 'spatial(64)' is spread over several warps; run lowlp-expand-exchanges first}}
  %s = lowlp.reduce add %x dim 0 : !tile -> !sum
  lowlp.return
}

// -----

// Groups of 3 threads: one of them is divided by the end of the first warp.
!tile = !lowlp.tile<32x3xf32, spatial(32, 3)>
!sum = !lowlp.tile<32x1xf32, reduce(spatial(32, 3), dims=[1], keep_dims=True)>
lowlp.kernel @across_the_end() attributes {grid = affine_map<() -> (1)>, num_threads = 96 : i64} {
  %one = arith.constant 1.0 : f32
  %x = lowlp.splat %one : f32 -> !tile
  // expected-error @below {{'lowlp.reduce' op dimension 1 of 'spatial(32, 3)' is spread over several warps}}
  %s = lowlp.reduce max %x dim 1 : !tile -> !sum
  lowlp.return
}

// -----

lowlp.kernel @from_warp_to_warp(%p: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [2, 32] : !lowlp.ptr<f32> -> !lowlp.global<2x32xf32>
  %x = lowlp.load_global %v[%c0, %c0] : !lowlp.global<2x32xf32> -> !lowlp.tile<2x32xf32, spatial(2, 32)>
  // expected-error @below {{'lowlp.convert_layout' op moves elements from warp to warp; run lowlp-expand-exchanges first}}
  %y = lowlp.convert_layout %x : !lowlp.tile<2x32xf32, spatial(2, 32)> -> !lowlp.tile<2x32xf32, column_spatial(2, 32)>
  lowlp.return
}
