// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-to-thread

!a = !lowlp.tile<16x16xf16, local(2, 4).spatial(8, 4)>
!b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @layout_of_a() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.splat %one : f16 -> !b
  %c = lowlp.splat %zero : f32 -> !c
  // expected-error @below {{'lowlp.dot' op the layout of a, 'local(2, 4).spatial(8, 4)', is not made of the fragments of mma m16n8k16, 'column_local(2, 2).spatial(8, 4).local(1, 2)'}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  lowlp.return
}

// -----

// Each operand that does not fit is named.
!a = !lowlp.tile<16x16xbf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xbf16, spatial(8, 4).local(2, 2)>
!c = !lowlp.tile<16x8xf32, spatial(8, 4).local(2, 2)>
lowlp.kernel @layouts_of_b_and_c() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : bf16
  %a = lowlp.splat %one : bf16 -> !a
  %b = lowlp.splat %one : bf16 -> !b
  %c = lowlp.splat %zero : f32 -> !c
  // expected-error @below {{'lowlp.dot' op the layout of b, 'spatial(8, 4).local(2, 2)', is not made of the fragments}}
  // expected-error @below {{'lowlp.dot' op the layout of c, 'spatial(8, 4).local(2, 2)', is not made of the fragments}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  lowlp.return
}

// -----

// The warps divide a along m, but c along n: the second warp lacks the rows of a that its columns of c need.
!a = !lowlp.tile<32x16xf16, spatial(2, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x16xf16, spatial(1, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<32x16xf32, local(2, 1).spatial(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @lacks_a() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.splat %one : f16 -> !b
  %c = lowlp.splat %zero : f32 -> !c
  // expected-error @below {{'lowlp.dot' op a warp needs rows 0 to 7 and columns 0 to 7 of a for rows 0 to 7 and columns 0 to 7 of c, in one register in all warps}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  lowlp.return
}

// -----

!a = !lowlp.tile<16x32xf16, local(1, 2).reduce(spatial(2, 1), dims=[0], keep_dims=True).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<32x8xf16, spatial(2, 1).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<16x8xf32, reduce(spatial(2, 1), dims=[0], keep_dims=True).local(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @lacks_b() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.splat %one : f16 -> !b
  %c = lowlp.splat %zero : f32 -> !c
  // expected-error @below {{'lowlp.dot' op a warp needs rows 0 to 7 and columns 0 to 7 of b for rows 0 to 7 and columns 0 to 7 of c, in one register in all warps}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  lowlp.return
}

// -----

// 8 rows more than fragments have.
!a = !lowlp.tile<24x16xf16, local(3, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<24x8xf32, local(3, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @half_a_fragment(%a: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %x = lowlp.splat %one : f16 -> !a
  %y = lowlp.splat %one : f16 -> !b
  %z = lowlp.splat %zero : f32 -> !c
  // expected-error @below {{'lowlp.dot' op the layout of a, 'local(3, 2).spatial(8, 4).local(1, 2)', is not made of the fragments}}
  // expected-error @below {{'lowlp.dot' op the layout of c, 'local(3, 1).spatial(8, 4).local(1, 2)', is not made of the fragments}}
  %d = lowlp.dot %x, %y, %z : !a, !b, !c
  lowlp.return
}

// -----

// Each warp has one half of every fragment of c.
!a = !lowlp.tile<16x16xf16, reduce(spatial(2, 1), dims=[0], keep_dims=True).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xf16, reduce(spatial(2, 1), dims=[0], keep_dims=True).local(2, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<16x8xf32, spatial(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @lacks_c() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = lowlp.splat %one : f16 -> !a
  %b = lowlp.splat %one : f16 -> !b
  %c = lowlp.splat %zero : f32 -> !c
  // expected-error @below {{'lowlp.dot' op a warp needs rows 8 to 15 and columns 0 to 7 of c for rows 0 to 7 and columns 0 to 7 of c, in one register in all warps}}
  %d = lowlp.dot %a, %b, %c : !a, !b, !c
  lowlp.return
}
