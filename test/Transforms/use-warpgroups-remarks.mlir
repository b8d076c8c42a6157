// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --remarks-filter=lowlp-use-warpgroups --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups))"
// RUN: lowlp-opt %s --split-input-file --remarks-filter=lowlp-use-warpgroups --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-use-warpgroups{arch=sm_80}))" -o /dev/null 2>&1 | FileCheck %s

!ring = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// CHECK: [Missed] warpgroups | Category:lowlp-use-warpgroups | Function=products | Op=lowlp.kernel, Reason="sm_80 has no products by warpgroups"
lowlp.kernel @products() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %zeros = lowlp.splat %zero : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %t = lowlp.splat %half : f16 -> !xt
  %ring = lowlp.alloc_shared : !ring
  // expected-remark @below {{[Missed] warpgroups | Category:lowlp-use-warpgroups | Function=products | Op=lowlp.dot, Reason="operand b is not the transpose of a tile"}}
  %d0 = lowlp.dot %a, %t, %zeros : !a, !xt, !sum
  %x = lowlp.load_shared %ring[%c0, %c0] : !ring -> !x
  %xt = lowlp.transpose %x [1, 0] : !x -> !xt
  // expected-remark @below {{operand b may reach outside of its shared tile}}
  %d1 = lowlp.dot %a, %xt, %zeros : !a, !xt, !sum
  lowlp.return
}

// -----

!ring = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<32x64xf16, spatial(2, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 2), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 2), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<32x16xf32, spatial(2, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

lowlp.kernel @warps() attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %zeros = lowlp.splat %zero : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %ring = lowlp.alloc_shared : !ring
  %x = lowlp.load_shared %ring[%c0, %c0] in_bounds : !ring -> !x
  %xt = lowlp.transpose %x [1, 0] : !x -> !xt
  // expected-remark @below {{the kernel's threads are not whole warpgroups}}
  %d = lowlp.dot %a, %xt, %zeros : !a, !xt, !sum
  lowlp.return
}

// -----

!ring = !lowlp.shared<16x64xf16, swizzle(local(16, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<16x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x16xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// One warpgroup has nobody to take turns with.
lowlp.kernel @ping_pong() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup, ping_pong = true>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %zeros = lowlp.splat %zero : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %ring = lowlp.alloc_shared : !ring
  // expected-remark @below {{[Missed] ping-pong | Category:lowlp-use-warpgroups | Function=ping_pong | Op=scf.for, Reason="warpgroups take turns in loops of the kernel's own body and in loops of these, and where there are two or more"}}
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    %x = lowlp.load_shared %ring[%c0, %c0] in_bounds : !ring -> !x
    %xt = lowlp.transpose %x [1, 0] : !x -> !xt
    %d = lowlp.dot %a, %xt, %acc : !a, !xt, !sum
    scf.yield %d : !sum
  }
  lowlp.return
}

// -----

!ring = !lowlp.shared<264x64xf16, swizzle(local(264, 8), dim=1).local(1, 8)>
!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<264x64xf16, reduce(spatial(1, 1, 4), dims=[2]).column_local(33, 4).local(1, 2).spatial(8, 4).local(1, 2)>
!xt = !lowlp.tile<64x264xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 33).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x264xf32, spatial(4, 1).local(1, 33).local(2, 1).spatial(8, 4).local(1, 2)>

lowlp.kernel @columns() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %zeros = lowlp.splat %zero : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %ring = lowlp.alloc_shared : !ring
  %x = lowlp.load_shared %ring[%c0, %c0] in_bounds : !ring -> !x
  %xt = lowlp.transpose %x [1, 0] : !x -> !xt
  // expected-remark @below {{the product has more than 256 columns}}
  %d = lowlp.dot %a, %xt, %zeros : !a, !xt, !sum
  lowlp.return
}

// -----

// Two slices of K of one warpgroup.
!ring = !lowlp.shared<2x16x32xf16, local(2, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>
!a = !lowlp.tile<32x64xf16, spatial(1, 2).spatial(2, 1).local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<2x16x32xf16, spatial(2, 1, 1).reduce(spatial(1, 1, 1, 2), dims=[3]).column_local(1, 2, 2).local(1, 1, 2).spatial(1, 8, 4).local(1, 1, 2)>
!xs = !lowlp.tile<2x32x16xf16, spatial(2, 1, 1).reduce(spatial(1, 1, 1, 2), dims=[3]).local(1, 2, 2).local(1, 2, 1).column_spatial(1, 4, 8).local(1, 2, 1)>
!xt = !lowlp.tile<64x16xf16, spatial(2, 1).reduce(spatial(1, 1, 2), dims=[2]).local(2, 2).local(2, 1).column_spatial(4, 8).local(2, 1)>
!sum = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
lowlp.kernel @slices_of_warps() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64, schedule = #lowlp.schedule<matrix_unit = warpgroup>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f16
  %zeros = lowlp.splat %zero : f32 -> !sum
  %a = lowlp.splat %half : f16 -> !a
  %ring = lowlp.alloc_shared : !ring
  %t = lowlp.load_shared %ring[%c0, %c0, %c0] in_bounds : !ring -> !x
  %turned = lowlp.transpose %t [0, 2, 1] : !x -> !xs
  %b = lowlp.view %turned : !xs -> !xt
  // expected-remark @below {{the threads of a slice of K are not whole warpgroups}}
  %d = lowlp.dot %a, %b, %zeros : !a, !xt, !sum
  lowlp.return
}
