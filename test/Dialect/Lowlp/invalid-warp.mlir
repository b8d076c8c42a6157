// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @part(%x: !lowlp.tile<16xf16, spatial(16)>, %lane: index) {
  // expected-error @below {{'lowlp.warp_shuffle' op takes whole warps of 32 threads, but the tile is held by 16}}
  %t = lowlp.warp_shuffle xor %x, %lane : !lowlp.tile<16xf16, spatial(16)>
  return
}

// -----

func.func @replicas(%x: !lowlp.tile<1xf16, reduce(spatial(32), dims=[0], keep_dims=True)>, %lane: index) {
  // expected-error @below {{'lowlp.warp_shuffle' op several threads hold one element of 'reduce(spatial(1, 32), dims=[1])', and would not agree on it any more}}
  %t = lowlp.warp_shuffle up %x, %lane : !lowlp.tile<1xf16, reduce(spatial(32), dims=[0], keep_dims=True)>
  return
}

// -----

!words = !lowlp.tile<1x1xui32, reduce(spatial(1, 32), dims=[1], keep_dims=True)>
func.func @condition(%x: !lowlp.tile<32xui2, spatial(32)>) {
  // expected-error @below {{'lowlp.ballot' op the condition must hold ui1, but holds 'ui2'}}
  %t = lowlp.ballot %x : !lowlp.tile<32xui2, spatial(32)> -> !words
  return
}

// -----

func.func @result(%x: !lowlp.tile<32xui1, spatial(32)>) {
  // expected-error @below {{'lowlp.ballot' op the result must be '!lowlp.tile<1x1xui32, reduce(spatial(1, 1, 32), dims=[2])>', but is '!lowlp.tile<32xui32, spatial(32)>'}}
  %t = lowlp.ballot %x : !lowlp.tile<32xui1, spatial(32)> -> !lowlp.tile<32xui32, spatial(32)>
  return
}
