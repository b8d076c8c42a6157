// What the inner loops of groups of 32 are made of: 16 x 64 weights by 8 columns, of which a thread has 32. All of the loop is counted, and
// the stores after it: 1.6 instructions a weight with scales of f16, 1.9 with e8m0, loads and addresses left out.
//
// RUN: split-file %s %t
// RUN: lowlp-opt %t/int4.mlir --lowlp-to-ptx="arch=sm_90a" | sed 's/\\0A/\n/g; s/\\09/ /g' | sed '1,/^[$]L__BB/d' > %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-MMA < %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-LOGIC < %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-PRMT < %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-HALVES < %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-WIDEN < %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-MUL < %t/int4.ptx
// RUN: FileCheck %s --check-prefix=INT4-FMA < %t/int4.ptx
// RUN: lowlp-opt %t/mxfp4.mlir --lowlp-to-ptx="arch=sm_90a" | sed 's/\\0A/\n/g; s/\\09/ /g' | sed '1,/^[$]L__BB/d' > %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-MMA < %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-LOGIC < %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-SHIFT < %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-MAX < %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-SHFL < %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-MUL < %t/mxfp4.ptx
// RUN: FileCheck %s --check-prefix=MXFP4-FMA < %t/mxfp4.ptx
//
// Four products, and as many with ones, which are the sums of x that the offset of signed codes needs. Codes are masked where they lie;
// of a quarter of them an addition takes what is above. Scales take the powers of two of the plan, one product for each of 2 rows in 2
// groups; 4 for a group are what the offset comes to, with which accumulators begin. Each accumulator is scaled by one FMA a group.
// INT4-MMA-COUNT-8: mma.sync
// INT4-MMA-NOT: mma.sync
// INT4-LOGIC-COUNT-12: {{and|lop3}}.b32
// INT4-LOGIC-NOT: {{and|lop3}}.b32
// INT4-PRMT-COUNT-4: prmt.b32
// INT4-PRMT-NOT: prmt.b32
// INT4-HALVES-COUNT-4: sub.rn.f16x2
// INT4-HALVES-NOT: sub.rn.f16x2
// INT4-WIDEN-COUNT-4: cvt.f32.f16
// INT4-WIDEN-NOT: cvt.f32.f16
// INT4-MUL-COUNT-12: mul.rn.f32
// INT4-MUL-NOT: mul.rn.f32
// INT4-FMA-COUNT-8: fma.rn.f32
// INT4-FMA-NOT: fma.rn.f32
//
// Floats take masks and shifts for sign and magnitude, and no sums of x. A thread shifts and compares the scale of one row in a group, and
// gives it to another by a shuffle. Powers of e8m0 are any that f32 has, so that those of the plan stay on accumulators.
// MXFP4-MMA-COUNT-4: mma.sync
// MXFP4-MMA-NOT: mma.sync
// MXFP4-LOGIC-COUNT-20: lop3.b32
// MXFP4-LOGIC-NOT: lop3.b32
// MXFP4-SHIFT-COUNT-18: {{shf\.|shl\.b32}}
// MXFP4-SHIFT-NOT: {{shf\.|shl\.b32}}
// MXFP4-MAX-COUNT-2: max.u32
// MXFP4-MAX-NOT: max.u32
// MXFP4-SHFL-COUNT-2: shfl.sync
// MXFP4-SHFL-NOT: shfl.sync
// MXFP4-MUL-COUNT-8: mul.rn.f32
// MXFP4-MUL-NOT: mul.rn.f32
// MXFP4-FMA-COUNT-8: fma.rn.f32
// MXFP4-FMA-NOT: fma.rn.f32

//--- int4.mlir
!x_units = !lowlp.tile<1x8x32xf16, local(1, 1, 4).spatial(1, 8, 4).local(1, 1, 2)>
!x_rows = !lowlp.tile<8x32xf16, local(1, 4).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<32x8xf16, local(4, 1).column_spatial(4, 8).local(2, 1)>
!codes = !lowlp.tile<16x32xsi4, column_local(2, 4).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x32xf16, column_local(2, 4).spatial(8, 4).local(1, 2)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf32, local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!scales = !lowlp.tile<1x1x16xf16, local(1, 1, 2).spatial(1, 1, 8).reduce(spatial(1, 1, 1, 4), dims=[3])>
!half_column = !lowlp.tile<16x1xf16, local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
lowlp.kernel @int4_in_32(%xs: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %ws: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %ss: !lowlp.ptr<f16> {lowlp.align = 16 : i64},
    %ys: !lowlp.ptr<f32> {lowlp.align = 16 : i64}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<decode_offsets = accumulators>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x_view = lowlp.view_global %xs shape [8, 8, 64] strides [64, 512, 1] : !lowlp.ptr<f16> -> !lowlp.global<8x8x64xf16>
  %w_view = lowlp.view_packed %ws shape [16, 512] : !lowlp.ptr<ui32> -> !lowlp.packed<16x512, #lowlp.codec<int4 g32 f16>, f16>
  %s_view = lowlp.view_global %ss shape [8, 2, 16] : !lowlp.ptr<f16> -> !lowlp.global<8x2x16xf16>
  %y_view = lowlp.view_global %ys shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %y = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    %k = arith.muli %i, %c64 : index
    %u0 = lowlp.load_global %x_view[%i, %c0, %c0] : !lowlp.global<8x8x64xf16> -> !x_units
    %r0 = lowlp.view %u0 : !x_units -> !x_rows
    %x0 = lowlp.transpose %r0 [1, 0] : !x_rows -> !x
    %q0 = lowlp.load_packed %w_view[%c0, %k] : !lowlp.packed<16x512, #lowlp.codec<int4 g32 f16>, f16> -> !codes
    %a0 = lowlp.cast %q0 : !codes -> !halves
    %p0 = lowlp.dot %a0, %x0, %zeros : !halves, !x, !sum
    %s0 = lowlp.load_global %s_view[%i, %c0, %c0] : !lowlp.global<8x2x16xf16> -> !scales
    %h0 = lowlp.view %s0 : !scales -> !half_column
    %f0 = lowlp.cast %h0 : !half_column -> !column
    %t0 = lowlp.broadcast %f0 : !column -> !sum
    %y0 = lowlp.fma %t0, %p0, %acc : !sum
    %u1 = lowlp.load_global %x_view[%i, %c0, %c32] : !lowlp.global<8x8x64xf16> -> !x_units
    %r1 = lowlp.view %u1 : !x_units -> !x_rows
    %x1 = lowlp.transpose %r1 [1, 0] : !x_rows -> !x
    %q1 = lowlp.load_packed %w_view[%c0, %k] step 2 : !lowlp.packed<16x512, #lowlp.codec<int4 g32 f16>, f16> -> !codes
    %a1 = lowlp.cast %q1 : !codes -> !halves
    %p1 = lowlp.dot %a1, %x1, %zeros : !halves, !x, !sum
    %s1 = lowlp.load_global %s_view[%i, %c1, %c0] : !lowlp.global<8x2x16xf16> -> !scales
    %h1 = lowlp.view %s1 : !scales -> !half_column
    %f1 = lowlp.cast %h1 : !half_column -> !column
    %t1 = lowlp.broadcast %f1 : !column -> !sum
    %y1 = lowlp.fma %t1, %p1, %y0 : !sum
    scf.yield %y1 : !sum
  }
  lowlp.store_global %y, %y_view[%c0, %c0] : !sum, !lowlp.global<16x8xf32>
  lowlp.return
}

//--- mxfp4.mlir
!x_units = !lowlp.tile<1x8x32xf16, local(1, 1, 4).spatial(1, 8, 4).local(1, 1, 2)>
!x_rows = !lowlp.tile<8x32xf16, local(1, 4).spatial(8, 4).local(1, 2)>
!x = !lowlp.tile<32x8xf16, local(4, 1).column_spatial(4, 8).local(2, 1)>
!codes = !lowlp.tile<16x32xf4E2M1FN, column_local(2, 4).spatial(8, 4).local(1, 2)>
!halves = !lowlp.tile<16x32xf16, column_local(2, 4).spatial(8, 4).local(1, 2)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!column = !lowlp.tile<16x1xf32, local(2, 1).spatial(8, 1).reduce(spatial(1, 1, 4), dims=[2])>
!bytes = !lowlp.tile<1x1x16xui8, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 1, 16)>
!words = !lowlp.tile<1x1x16xui32, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 1, 16)>
!dealt = !lowlp.tile<1x1x16xf32, spatial(1, 8).reduce(spatial(1, 1, 2), dims=[2]).spatial(2, 1).reshape(1, 1, 16)>
!scales = !lowlp.tile<1x1x16xf32, local(1, 1, 2).spatial(1, 1, 8).reduce(spatial(1, 1, 1, 4), dims=[3])>
lowlp.kernel @mxfp4(%xs: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %ws: !lowlp.ptr<ui32> {lowlp.align = 16 : i64}, %ss: !lowlp.ptr<ui8> {lowlp.align = 16 : i64},
    %ys: !lowlp.ptr<f32> {lowlp.align = 16 : i64}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, schedule = #lowlp.schedule<decode_offsets = accumulators>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %c23 = arith.constant 23 : i32
  %c22 = arith.constant 4194304 : i32
  %shift = lowlp.splat %c23 : i32 -> !words
  %least = lowlp.splat %c22 : i32 -> !words
  %zeros = lowlp.splat %zero : f32 -> !sum
  %x_view = lowlp.view_global %xs shape [8, 8, 64] strides [64, 512, 1] : !lowlp.ptr<f16> -> !lowlp.global<8x8x64xf16>
  %w_view = lowlp.view_packed %ws shape [16, 512] : !lowlp.ptr<ui32> -> !lowlp.packed<16x512, #lowlp.codec<f4e2m1 g32 e8m0>, f16>
  %s_view = lowlp.view_global %ss shape [8, 2, 16] : !lowlp.ptr<ui8> -> !lowlp.global<8x2x16xui8>
  %y_view = lowlp.view_global %ys shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %y = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zeros) -> (!sum) {
    %k = arith.muli %i, %c64 : index
    %u0 = lowlp.load_global %x_view[%i, %c0, %c0] : !lowlp.global<8x8x64xf16> -> !x_units
    %r0 = lowlp.view %u0 : !x_units -> !x_rows
    %x0 = lowlp.transpose %r0 [1, 0] : !x_rows -> !x
    %q0 = lowlp.load_packed %w_view[%c0, %k] : !lowlp.packed<16x512, #lowlp.codec<f4e2m1 g32 e8m0>, f16> -> !codes
    %a0 = lowlp.cast %q0 : !codes -> !halves
    %p0 = lowlp.dot %a0, %x0, %zeros : !halves, !x, !sum
    %s0 = lowlp.load_global %s_view[%i, %c0, %c0] : !lowlp.global<8x2x16xui8> -> !bytes
    %w0 = lowlp.cast %s0 : !bytes -> !words
    %b0 = lowlp.shl %w0, %shift : !words
    %m0 = lowlp.maximum %b0, %least : !words
    %d0 = lowlp.view %m0 : !words -> !dealt
    %g0 = lowlp.convert_layout %d0 : !dealt -> !scales
    %f0 = lowlp.view %g0 : !scales -> !column
    %t0 = lowlp.broadcast %f0 : !column -> !sum
    %y0 = lowlp.fma %t0, %p0, %acc : !sum
    %u1 = lowlp.load_global %x_view[%i, %c0, %c32] : !lowlp.global<8x8x64xf16> -> !x_units
    %r1 = lowlp.view %u1 : !x_units -> !x_rows
    %x1 = lowlp.transpose %r1 [1, 0] : !x_rows -> !x
    %q1 = lowlp.load_packed %w_view[%c0, %k] step 2 : !lowlp.packed<16x512, #lowlp.codec<f4e2m1 g32 e8m0>, f16> -> !codes
    %a1 = lowlp.cast %q1 : !codes -> !halves
    %p1 = lowlp.dot %a1, %x1, %zeros : !halves, !x, !sum
    %s1 = lowlp.load_global %s_view[%i, %c1, %c0] : !lowlp.global<8x2x16xui8> -> !bytes
    %w1 = lowlp.cast %s1 : !bytes -> !words
    %b1 = lowlp.shl %w1, %shift : !words
    %m1 = lowlp.maximum %b1, %least : !words
    %d1 = lowlp.view %m1 : !words -> !dealt
    %g1 = lowlp.convert_layout %d1 : !dealt -> !scales
    %f1 = lowlp.view %g1 : !scales -> !column
    %t1 = lowlp.broadcast %f1 : !column -> !sum
    %y1 = lowlp.fma %t1, %p1, %y0 : !sum
    scf.yield %y1 : !sum
  }
  lowlp.store_global %y, %y_view[%c0, %c0] : !sum, !lowlp.global<16x8xf32>
  lowlp.return
}
