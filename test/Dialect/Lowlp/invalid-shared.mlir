// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @element(%s: !lowlp.shared<32xf16>, %i: index) {
  // expected-error @below {{'lowlp.load_shared' op element types must match: the tile holds 'bf16', shared memory holds 'f16'}}
  %t = lowlp.load_shared %s[%i] : !lowlp.shared<32xf16> -> !lowlp.tile<32xbf16, spatial(32)>
  return
}

// -----

func.func @offsets(%s: !lowlp.shared<2x32xui8>, %t: !lowlp.tile<32xui8, spatial(32)>, %i: index) {
  // expected-error @below {{'lowlp.store_shared' op expected one offset for each of the 2 dimensions of the shared tile, found 1}}
  lowlp.store_shared %t, %s[%i] : !lowlp.tile<32xui8, spatial(32)>, !lowlp.shared<2x32xui8>
  return
}

// -----

func.func @rank(%s: !lowlp.shared<32xf16>, %i: index) {
  // expected-error @below {{'lowlp.load_shared' op the tile has 2 dimensions, but the shared tile has only 1}}
  %t = lowlp.load_shared %s[%i] : !lowlp.shared<32xf16> -> !lowlp.tile<1x32xf16, spatial(1, 32)>
  return
}

// -----

lowlp.kernel @threads() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<32xf16>
  // expected-error @below {{'lowlp.load_shared' op the tile is held by 32 threads, but the block has 64}}
  %t = lowlp.load_shared %s[%c0] : !lowlp.shared<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.return
}

// -----

// expected-error @below {{the extent along the swizzled dimension must be a power of two; found 6 in local(4, 6)}}
func.func private @swizzle(!lowlp.shared<4x6xf16, swizzle(local(4, 6), dim=1)>)

// -----

// expected-error @below {{expected local, spatial, column_local, column_spatial, reduce, reshape, permute, squeeze, unsqueeze or broadcast at position 12 of the layout}}
func.func private @swizzled_registers(!lowlp.tile<4x4xf16, local(4, 4).swizzle(local(1, 1), dim=1)>)

// -----

// expected-error @below {{shape is 4x8, but the layout's shape is 4x4}}
func.func private @shape(!lowlp.shared<4x8xf16, swizzle(local(4, 4), dim=1)>)
