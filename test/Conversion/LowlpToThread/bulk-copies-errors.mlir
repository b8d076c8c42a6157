// RUN: lowlp-opt %s --lowlp-convert-to-thread --split-input-file --verify-diagnostics

lowlp.kernel @align(%p: !lowlp.ptr<f16>, %m: i32, %k: i32) attributes {grid = affine_map<(m, k) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the parameter of the view must promise an alignment of 16 bytes}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0] shape [16, 64] signals %b[%c0] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @offset(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32, %k: i32) attributes {grid = affine_map<(m, k) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the destination offsets along the part must be 0}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c8, %c0] shape [16, 64] signals %b[%c0] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @stages(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32, %k: i32) attributes {grid = affine_map<(m, k) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<2x3x16xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %i = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the parts of the shared tile must take a multiple of 128 bytes, but take 96}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%i, %c0, %c0] shape [3, 16] signals %b[%c0] : !lowlp.global<64x64xf16> to !lowlp.shared<2x3x16xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @stride(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32, %k: i32) attributes {grid = affine_map<(m, k) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 36] : !lowlp.ptr<f16> -> !lowlp.global<64x36xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the strides of the view but the last must be multiples of 16 bytes, but one is 72}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0] shape [16, 64] signals %b[%c0] : !lowlp.global<64x36xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @formula(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32, %k: i32) attributes {grid = affine_map<(m, k) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %rows = arith.index_cast %m : i32 to index
  %columns = arith.index_cast %k : i32 to index
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %square = arith.muli %rows, %columns : index
  %v = lowlp.view_global %p shape [%square, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op extents and strides of the view must be affine functions of the kernel's parameters}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0] shape [16, 64] signals %b[%c0] : !lowlp.global<?x64xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @pointer(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %is_zero = arith.cmpi eq, %m, %zero : i32
  %chosen = arith.select %is_zero, %p, %q : !lowlp.ptr<f16>
  %v = lowlp.view_global %chosen shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op the view must be of a parameter of the kernel}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0] shape [16, 64] signals %b[%c0] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @tile(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = lowlp.alloc_shared : !lowlp.shared<16x64xf16>
  %b = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<1>
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %s) -> (!lowlp.shared<16x64xf16>) {
    // expected-error @below {{'lowlp.copy_tensor' op the destination must be a result of lowlp.alloc_shared}}
    lowlp.copy_tensor %v[%c0, %c0] to %t[%c0, %c0] shape [16, 64] signals %b[%c0] : !lowlp.global<64x64xf16> to !lowlp.shared<16x64xf16>, !lowlp.mbarriers<1>
    scf.yield %t : !lowlp.shared<16x64xf16>
  }
  lowlp.return
}
