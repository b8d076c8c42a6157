// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @view_element(%p: !lowlp.ptr<f16>) {
  // expected-error @below {{'lowlp.view_global' op element types must match: source holds 'f16', view holds 'bf16'}}
  %v = lowlp.view_global %p shape [4] : !lowlp.ptr<f16> -> !lowlp.global<4xbf16>
  return
}

// -----

func.func @view_extents(%p: !lowlp.ptr<f16>) {
  // expected-error @below {{'lowlp.view_global' op extents must match the type of the view, '!lowlp.global<4x?xf16>'}}
  %v = lowlp.view_global %p shape [4, 8] : !lowlp.ptr<f16> -> !lowlp.global<4x?xf16>
  return
}

// -----

func.func @view_strides(%p: !lowlp.ptr<f16>) {
  // expected-error @below {{'lowlp.view_global' op expected one stride for each of the 2 dimensions, found 1}}
  %v = lowlp.view_global %p shape [4, 8] strides [1] : !lowlp.ptr<f16> -> !lowlp.global<4x8xf16>
  return
}

// -----

func.func @view_negative_stride(%p: !lowlp.ptr<f16>) {
  // expected-error @below {{'lowlp.view_global' op strides must not be negative, but one is -8}}
  %v = lowlp.view_global %p shape [4, 8] strides [-8, 1] : !lowlp.ptr<f16> -> !lowlp.global<4x8xf16>
  return
}

// -----

// Only the generic form can name too few values.
func.func @view_values(%p: !lowlp.ptr<f16>) {
  // expected-error @below {{'lowlp.view_global' op expected one value for each dynamic extent and stride}}
  %v = "lowlp.view_global"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>,
      staticShape = array<i64: -9223372036854775808>}> : (!lowlp.ptr<f16>) -> !lowlp.global<?xf16>
  return
}

// -----

func.func @access_of_argument(%v: !lowlp.global<32xf16>, %i: index) {
  // expected-error @below {{'lowlp.load_global' op the view must be a result of lowlp.view_global}}
  %t = lowlp.load_global %v[%i] : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  return
}

// -----

func.func @access_element(%p: !lowlp.ptr<ui8>, %t: !lowlp.tile<32xsi8, spatial(32)>, %i: index) {
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<ui8> -> !lowlp.global<32xui8>
  // expected-error @below {{'lowlp.store_global' op element types must match: the tile holds 'si8', the view holds 'ui8'}}
  lowlp.store_global %t, %v[%i] : !lowlp.tile<32xsi8, spatial(32)>, !lowlp.global<32xui8>
  return
}

// -----

func.func @access_offsets(%p: !lowlp.ptr<f16>, %i: index) {
  %v = lowlp.view_global %p shape [4, 32] : !lowlp.ptr<f16> -> !lowlp.global<4x32xf16>
  // expected-error @below {{'lowlp.load_global' op expected one offset for each of the view's 2 dimensions, found 1}}
  %t = lowlp.load_global %v[%i] : !lowlp.global<4x32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  return
}

// -----

func.func @access_rank(%p: !lowlp.ptr<f16>, %i: index) {
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  // expected-error @below {{'lowlp.load_global' op the tile has 2 dimensions, but the view has only 1}}
  %t = lowlp.load_global %v[%i] : !lowlp.global<32xf16> -> !lowlp.tile<8x4xf16, spatial(8, 4)>
  return
}

// -----

lowlp.kernel @access_threads(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %i = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  // expected-error @below {{'lowlp.load_global' op the tile is held by 32 threads, but a block has 64}}
  %t = lowlp.load_global %v[%i] : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.return
}

// -----

func.func @countless(%p: !lowlp.ptr<f16>) {
  // expected-error @below {{'lowlp.view_global' op is too large for addresses of 64 bits, '!lowlp.global<4294967296x2147483648x4294967296xf16>'}}
  %v = lowlp.view_global %p shape [4294967296, 2147483648, 4294967296] : !lowlp.ptr<f16> -> !lowlp.global<4294967296x2147483648x4294967296xf16>
  return
}
