// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @count(%b: !lowlp.mbarriers<1>) { return }

// -----

// expected-error @below {{there must be 1 to 1024 mbarriers, but are 0}}
func.func @no_mbarriers(%b: !lowlp.mbarriers<0>) { return }

// -----

lowlp.kernel @arrivals() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.alloc_mbarriers' op arrivals must be 1 to 1048575, but are 0}}
  %b = lowlp.alloc_mbarriers arrivals 0 : !lowlp.mbarriers<1>
  lowlp.return
}

// -----

func.func @place() {
  // expected-error @below {{'lowlp.alloc_mbarriers' op must stand in the body of the kernel itself, but is in a func.func}}
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  return
}

// -----

func.func @expect(%b: !lowlp.mbarriers<1>, %i: index) {
  // expected-error @below {{'lowlp.mbarrier_expect_bytes' op bytes must be 1 to 1048575, but are 0}}
  lowlp.mbarrier_expect_bytes %b[%i] bytes 0 : !lowlp.mbarriers<1>
  return
}

// -----

func.func @view(%v: !lowlp.global<64x64xf16>, %s: !lowlp.shared<3x16x64xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  // expected-error @below {{'lowlp.copy_bulk' op the source must be a result of lowlp.view_global}}
  lowlp.copy_bulk %v[%i, %i] to %s[%i, %i, %i] shape [16, 64] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x64xf16>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @target(%v: !lowlp.global<64x64xf16>, %s: !lowlp.shared<3x16x64xf16>, %i: index) {
  // expected-error @below {{'lowlp.copy_bulk_to_global' op the destination must be a result of lowlp.view_global}}
  lowlp.copy_bulk_to_global %s[%i, %i, %i] to %v[%i, %i] shape [16, 64] : !lowlp.shared<3x16x64xf16> to !lowlp.global<64x64xf16>
  return
}

// -----

func.func @row(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x16x64xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_bulk' op a row of the part must take a multiple of 16 bytes, but takes 64 bits}}
  lowlp.copy_bulk %v[%i, %i] to %s[%i, %i, %i] shape [16, 4] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x64xf16>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @stride(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x64xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] strides [1, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_bulk' op the last stride of the view must be 1}}
  lowlp.copy_bulk %v[%i, %i] to %s[%i, %i] shape [16, 64] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @runs(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_bulk' op the rows of the shared tile must be whole, but its layout has runs of 8 of 64 elements}}
  lowlp.copy_bulk %v[%i, %i] to %s[%i, %i] shape [16, 64] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @shared_row(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x36xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_bulk' op a row of the shared tile must take a multiple of 16 bytes, but takes 576 bits}}
  lowlp.copy_bulk %v[%i, %i] to %s[%i, %i] shape [16, 32] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<16x36xf16>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_bits(%p: !lowlp.ptr<ui4>, %s: !lowlp.shared<16x64xui4>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<ui4> -> !lowlp.global<64x64xui4>
  // expected-error @below {{'lowlp.copy_tensor' op elements must have 8, 16 or 32 bits, but have 4}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i] shape [16, 64] signals %b[%i] : !lowlp.global<64x64xui4> to !lowlp.shared<16x64xui4>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_rank(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x16x64xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [2, 2, 2, 2, 64, 64] : !lowlp.ptr<f16> -> !lowlp.global<2x2x2x2x64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the view must have 1 to 5 dimensions, but has 6}}
  lowlp.copy_tensor %v[%i, %i, %i, %i, %i, %i] to %s[%i, %i, %i] shape [16, 64] signals %b[%i] : !lowlp.global<2x2x2x2x64x64xf16> to !lowlp.shared<3x16x64xf16>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_extent(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x512x64xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [1024, 64] : !lowlp.ptr<f16> -> !lowlp.global<1024x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op an extent of shape must be at most 256, the last one without a swizzle a multiple of one that is, but shape is 512, 64}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i, %i] shape [512, 64] signals %b[%i] : !lowlp.global<1024x64xf16> to !lowlp.shared<3x512x64xf16>, !lowlp.mbarriers<3>
  return
}

// -----

lowlp.kernel @by_warps() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %i = arith.constant 0 : index
  %b = lowlp.alloc_mbarriers arrivals 1 by_warps : !lowlp.mbarriers<1>
  // expected-error @below {{'lowlp.mbarrier_expect_bytes' op arrives as one thread at mbarriers that count warps}}
  lowlp.mbarrier_expect_bytes %b[%i] bytes 64 : !lowlp.mbarriers<1>
  lowlp.return
}

// -----

func.func @tensor_part(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x16x64xf16>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op shape must be the last extents of the shared tile}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i, %i] shape [8, 64] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<3x16x64xf16>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_layout(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x64xf16, column_local(16, 64)>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the layout of the shared tile must be row-major or have the swizzle of tensor copies, but is column_local(16, 64)}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i] shape [16, 64] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16, column_local(16, 64)>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_row(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x96xf16, local(1, 3).swizzle(local(16, 4), dim=1).local(1, 8)>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 96] : !lowlp.ptr<f16> -> !lowlp.global<64x96xf16>
  // expected-error @below {{'lowlp.copy_tensor' op rows of a swizzled tile must take 32, 64 or a multiple of 128 bytes, but take 192}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i] shape [16, 96] signals %b[%i] : !lowlp.global<64x96xf16> to !lowlp.shared<16x96xf16, local(1, 3).swizzle(local(16, 4), dim=1).local(1, 8)>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_panel_rows(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<12x128xf16, local(1, 2).swizzle(local(12, 8), dim=1).local(1, 8)>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 128] : !lowlp.ptr<f16> -> !lowlp.global<64x128xf16>
  // expected-error @below {{'lowlp.copy_tensor' op a swizzled tile with rows of more than 128 bytes must have a multiple of 8 rows, but has 12}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i] shape [12, 128] signals %b[%i] : !lowlp.global<64x128xf16> to !lowlp.shared<12x128xf16, local(1, 2).swizzle(local(12, 8), dim=1).local(1, 8)>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_panels(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x128xf16, swizzle(local(16, 16), dim=1).local(1, 8)>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 128] : !lowlp.ptr<f16> -> !lowlp.global<64x128xf16>
  // expected-error @below {{'lowlp.copy_tensor' op a tensor copy of rows of 256 bytes lays them out as local(1, 2).swizzle(local(16, 8), dim=1).local(1, 8), but the layout of the shared tile is swizzle(local(16, 16), dim=1).local(1, 8)}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i] shape [16, 128] signals %b[%i] : !lowlp.global<64x128xf16> to !lowlp.shared<16x128xf16, swizzle(local(16, 16), dim=1).local(1, 8)>, !lowlp.mbarriers<3>
  return
}

// -----

func.func @tensor_swizzle(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<16x32xf16, swizzle(local(16, 4), dim=1).local(1, 8)>, %b: !lowlp.mbarriers<3>, %i: index) {
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op a tensor copy of rows of 64 bytes lays them out as swizzle(local(16, 4), dim=1, log_step=1).local(1, 8), but the layout of the shared tile is swizzle(local(16, 4), dim=1).local(1, 8)}}
  lowlp.copy_tensor %v[%i, %i] to %s[%i, %i] shape [16, 32] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<16x32xf16, swizzle(local(16, 4), dim=1).local(1, 8)>, !lowlp.mbarriers<3>
  return
}

// -----

lowlp.kernel @misaligned_part(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %i = arith.constant 0 : index
  %j = arith.constant 4 : index
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<16x32xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
  // expected-error @below {{'lowlp.copy_tensor' op the last offset in the view must be a multiple of 16 bytes, but is 4 elements of 16 bits}}
  lowlp.copy_tensor %v[%i, %j] to %s[%i, %i] shape [16, 32] signals %b[%i] : !lowlp.global<64x64xf16> to !lowlp.shared<16x32xf16>, !lowlp.mbarriers<3>
  lowlp.return
}
