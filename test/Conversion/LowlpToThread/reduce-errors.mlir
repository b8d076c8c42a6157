// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-to-thread

!tile = !lowlp.tile<64xf32, spatial(64)>
!sum = !lowlp.tile<1xf32, reduce(spatial(64), dims=[0])>
lowlp.kernel @two_warps() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %one = arith.constant 1.0 : f32
  %x = lowlp.splat %one : f32 -> !tile
  // expected-error @below {{'lowlp.reduce' op dimension 0 of 'spatial(64)' is spread over several warps: threads that differ by 63 hold elements of one sum; a reduction exchanges values within a warp}}
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
  // expected-error @below {{'lowlp.reduce' op dimension 1 of 'spatial(32, 3)' is spread over several warps: threads that differ by 2 hold}}
  %s = lowlp.reduce max %x dim 1 : !tile -> !sum
  lowlp.return
}
