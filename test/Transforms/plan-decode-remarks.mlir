// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --remarks-filter=lowlp-plan-decode --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-plan-decode))"

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!brains = !lowlp.tile<16x64xbf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf16, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!xb = !lowlp.tile<64x8xbf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// A product has a plan, or a reason why it has none. Products without packed weights are not spoken of.
lowlp.kernel @forms() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %halfb = arith.constant 0.5 : bf16
  %three = arith.constant 3.0 : f32
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %xb = lowlp.splat %halfb : bf16 -> !xb
  %words = lowlp.splat %word : i32 -> !words
  %column = lowlp.splat %half : f16 -> !column
  %s = lowlp.broadcast %column : !column -> !halves
  %tile = lowlp.splat %half : f16 -> !halves
  %other = lowlp.neg %tile : !halves
  %threes = lowlp.splat %three : f32 -> !wide
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  %w = lowlp.cast %q : !codes -> !wide

  %plain = lowlp.dot %tile, %x, %zeros : !halves, !x, !sum
  // expected-remark @below {{[Passed] plan | Category:lowlp-plan-decode | Function=forms | Op=lowlp.dot, Remark="decode int4.f16 accumulators words 4"}}
  %d0 = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  %once = lowlp.mul %a, %s : !halves
  // expected-remark @below {{[Passed] plan | Category:lowlp-plan-decode | Function=forms | Op=lowlp.dot, Remark="decode int4.f16 weights words 4"}}
  %d1 = lowlp.dot %once, %x, %zeros : !halves, !x, !sum
  %twice = lowlp.mul %once, %tile : !halves
  // expected-remark @below {{[Missed] plan | Category:lowlp-plan-decode | Function=forms | Op=lowlp.dot, Reason="weights are multiplied more than once; multiply the factors with each other first"}}
  %d2 = lowlp.dot %twice, %x, %zeros : !halves, !x, !sum
  %square = lowlp.mul %a, %a : !halves
  // expected-remark @below {{weights are multiplied with each other}}
  %d3 = lowlp.dot %square, %x, %zeros : !halves, !x, !sum
  %uniform = lowlp.mul %a, %tile : !halves
  // expected-remark @below {{weights are multiplied by one number for all of the tile; multiply the accumulators}}
  %d4 = lowlp.dot %uniform, %x, %zeros : !halves, !x, !sum
  %full = lowlp.mul %other, %a : !halves
  // expected-remark @below {{weights are multiplied by a tile that is not a column [rows, 1], repeated along the rows}}
  %d5 = lowlp.dot %full, %x, %zeros : !halves, !x, !sum
  %moved = lowlp.sub %a, %tile : !halves
  %points = lowlp.mul %moved, %s : !halves
  // expected-remark @below {{zero points are not a column [rows, 1], repeated along the rows}}
  %d6 = lowlp.dot %points, %x, %zeros : !halves, !x, !sum
  %negative = lowlp.neg %a : !halves
  %behind = lowlp.mul %negative, %s : !halves
  // expected-remark @below {{weights go through lowlp.neg before they are scaled, and not through one cast of the codes}}
  %d7 = lowlp.dot %behind, %x, %zeros : !halves, !x, !sum
  // expected-remark @below {{weights go through lowlp.neg and not through one cast of the codes}}
  %d8 = lowlp.dot %negative, %x, %zeros : !halves, !x, !sum
  %tripled = lowlp.mul %w, %threes : !wide
  %rounded = lowlp.cast %tripled : !wide -> !halves
  // expected-remark @below {{weights are scaled in f32 and rounded after; scale them in f16, or the accumulators}}
  %d9 = lowlp.dot %rounded, %x, %zeros : !halves, !x, !sum
  %f13 = arith.constant 8192.0 : f32
  %t13 = lowlp.splat %f13 : f32 -> !wide
  %m13 = lowlp.mul %w, %t13 : !wide
  %a13 = lowlp.cast %m13 : !wide -> !halves
  // expected-remark @below {{the program's casts round weights, and a plan rounds none}}
  %d10 = lowlp.dot %a13, %x, %zeros : !halves, !x, !sum
  %b = lowlp.cast %q : !codes -> !brains
  // expected-remark @below {{placement int4.f16 is not made for operands of bf16}}
  %d11 = lowlp.dot %b, %xb, %zeros : !brains, !xb, !sum
  // A zero point of f16 plus 8 may round.
  %p = lowlp.unpack %words from "int4.f16" : !words -> !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
  %c = lowlp.cast %p : !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)> -> !halves
  %less = lowlp.sub %c, %s : !halves
  %last = lowlp.mul %less, %s : !halves
  // expected-remark @below {{zero points are not known to be integers of 8 bits or fewer, which the type of the scales holds after the shift of the codes}}
  %d12 = lowlp.dot %last, %x, %zeros : !halves, !x, !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

lowlp.kernel @table() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : f16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "lut4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !halves
  // expected-remark @below {{codes of a table are looked up}}
  %d = lowlp.dot %a, %x, %zeros : !halves, !x, !sum
  lowlp.return
}

// -----

!words = !lowlp.tile<4x1x128xui32, spatial(4, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<64x64xui4, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!accumulators = !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!c = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// What a plan does to weights is undone on a tile, which another block takes here.
lowlp.kernel @in_flight() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %block = lowlp.block_indices : index
  %takes = arith.cmpi eq, %block, %c0 : index
  %word = arith.constant 77 : i32
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "int4.f16" : !words -> !codes
  %a = lowlp.cast %q : !codes -> !a
  %x = lowlp.alloc_shared : !x
  // expected-remark @below {{its accumulators stay in flight where they are used}}
  %s = lowlp.wgmma %a, %x[%c0, %c0] : !a, !x -> !accumulators
  lowlp.wgmma_commit
  scf.if %takes {
    %d = lowlp.wgmma_wait 0 takes %s : (!accumulators) -> !c
  }
  lowlp.return
}

// -----

!words = !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
!codes = !lowlp.tile<16x64xui4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!brains = !lowlp.tile<16x64xbf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!wide = !lowlp.tile<16x64xf32, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<64x8xbf16, local(8, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// bf16 holds 15 * 2^123, but the offset of the plan, 128, times that power is beyond f32.
lowlp.kernel @powers() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : bf16
  %power = arith.constant 0x7D000000 : f32
  %word = arith.constant 77 : i32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x = lowlp.splat %half : bf16 -> !x
  %words = lowlp.splat %word : i32 -> !words
  %q = lowlp.unpack %words from "int4.bf16" : !words -> !codes
  %w = lowlp.cast %q : !codes -> !wide
  %powers = lowlp.splat %power : f32 -> !wide
  %scaled = lowlp.mul %w, %powers : !wide
  %a = lowlp.cast %scaled : !wide -> !brains
  // expected-remark @below {{f32 does not hold the plan's powers of two}}
  %d = lowlp.dot %a, %x, %zeros : !brains, !x, !sum
  lowlp.return
}
