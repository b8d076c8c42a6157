// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @scalar_view(%v: !lowlp.global<8xsi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_scalar' op the source must be a result of lowlp.view_global}}
  %n = lowlp.load_scalar %v[%c0] : !lowlp.global<8xsi32> -> index
  return
}

// -----

func.func @scalar_offsets(%s: !lowlp.shared<8x2xsi32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_scalar' op expected one offset for each of the 2 dimensions, found 1}}
  %n = lowlp.load_scalar %s[%c0] : !lowlp.shared<8x2xsi32> -> index
  return
}

// -----

func.func @scalar_element(%s: !lowlp.shared<8xui4>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_scalar' op reads integers of 8, 16 or 32 bits, f16, bf16 or f32, but the elements are 'ui4'}}
  %n = lowlp.load_scalar %s[%c0] : !lowlp.shared<8xui4> -> index
  return
}

// -----

func.func @scalar_result(%s: !lowlp.shared<8xf16>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.load_scalar' op the result of 'f16' must be an f32, but is 'index'}}
  %n = lowlp.load_scalar %s[%c0] : !lowlp.shared<8xf16> -> index
  return
}

// -----

!tile = !lowlp.tile<32x2xf16, spatial(32, 1).local(1, 2)>
!rows = !lowlp.tile<32x1xsi32, spatial(32, 1)>
func.func @dim(%p: !lowlp.ptr<f16>, %rows: !rows) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64, 2] : !lowlp.ptr<f16> -> !lowlp.global<64x2xf16>
  // expected-error @below {{'lowlp.gather_global' op dim must be at least 0 and less than 2, but is 2}}
  %t = lowlp.gather_global %v[%c0, %c0] indices %rows dim 2 : !lowlp.global<64x2xf16>, !rows -> !tile
  return
}

// -----

!tile = !lowlp.tile<32x2xf16, spatial(32, 1).local(1, 2)>
!rows = !lowlp.tile<32x1xf32, spatial(32, 1)>
func.func @indices(%p: !lowlp.ptr<f16>, %rows: !rows) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64, 2] : !lowlp.ptr<f16> -> !lowlp.global<64x2xf16>
  // expected-error @below {{'lowlp.gather_global' op indices must be integers, but are 'f32'}}
  %t = lowlp.gather_global %v[%c0, %c0] indices %rows dim 0 : !lowlp.global<64x2xf16>, !rows -> !tile
  return
}

// -----

!tile = !lowlp.tile<32x2xf16, spatial(32, 1).local(1, 2)>
!rows = !lowlp.tile<32x1xsi32, reduce(spatial(1, 2), dims=[1], keep_dims=True).spatial(16, 1).local(2, 1)>
func.func @reach(%t: !tile, %p: !lowlp.ptr<f16>, %rows: !rows) {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64, 2] : !lowlp.ptr<f16> -> !lowlp.global<64x2xf16>
  // expected-error @below {{'lowlp.scatter_global' op the indices do not reach the tile: thread 1 does not hold element (1, 0) of the source}}
  lowlp.scatter_global %t, %v[%c0, %c0] indices %rows dim 0 : !tile, !lowlp.global<64x2xf16>, !rows
  return
}
