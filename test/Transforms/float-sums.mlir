// RUN: lowlp-opt %s --allow-unregistered-dialect --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-float-sums))" | FileCheck %s
// RUN: lowlp-opt %s --allow-unregistered-dialect --split-input-file --pass-pipeline="builtin.module(lowlp.kernel(lowlp-float-sums))" --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!a = !lowlp.tile<16x64xsi8, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!b = !lowlp.tile<64x8xsi8, local(2, 1).local(2, 1).column_spatial(4, 8).local(4, 1)>
!raw = !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Two products that add up begin at the bits of 1.5 x 2^23, and lose that number
// as f32. Zeros that others use stay.
// CHECK-LABEL: lowlp.kernel @two
// CHECK: %[[ZEROS:.*]] = lowlp.splat %c0_i32
// CHECK: %[[BITS:.*]] = arith.constant 1262485504 : i32
// CHECK: %[[BEGIN:.*]] = lowlp.splat %[[BITS]]
// CHECK: %[[FIRST:.*]] = lowlp.dot %{{.*}}, %{{.*}}, %[[BEGIN]]
// CHECK: %[[RAW:.*]] = lowlp.dot %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK: %[[SEEN:.*]] = lowlp.view %[[RAW]] : {{.*}} -> !lowlp.tile<16x8xf32
// CHECK: %[[NUMBER:.*]] = arith.constant 0x4B400000 : f32
// CHECK: %[[VALUE:.*]] = lowlp.splat %[[NUMBER]]
// CHECK: %[[SUM:.*]] = lowlp.sub %[[SEEN]], %[[VALUE]]
// CHECK-NOT: lowlp.cast
// CHECK: "test.sum"(%[[SUM]])
// CHECK: "test.zeros"(%[[ZEROS]])
lowlp.kernel @two(%px: !lowlp.ptr<si8>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %va = lowlp.view_global %px shape [16, 64] : !lowlp.ptr<si8> -> !lowlp.global<16x64xsi8>
  %vb = lowlp.view_global %px shape [64, 8] : !lowlp.ptr<si8> -> !lowlp.global<64x8xsi8>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x64xsi8> -> !a
  %b = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<64x8xsi8> -> !b
  %zeros = lowlp.splat %c0_i32 : i32 -> !raw
  %first = lowlp.dot %a, %b, %zeros : !a, !b, !raw
  %raw = lowlp.dot %a, %b, %first : !a, !b, !raw
  %sum = lowlp.cast %raw : !raw -> !sum
  "test.sum"(%sum) : (!sum) -> ()
  "test.zeros"(%zeros) : (!raw) -> ()
  lowlp.return
}

// -----

!few = !lowlp.tile<16x32xui8, column_local(2, 2).spatial(8, 4).local(1, 4)>
!few_x = !lowlp.tile<32x8xsi8, local(2, 1).column_spatial(4, 8).local(4, 1)>
!a = !lowlp.tile<16x256xui8, local(1, 8).column_local(2, 2).spatial(8, 4).local(1, 4)>
!b = !lowlp.tile<256x8xsi8, local(8, 1).local(2, 1).column_spatial(4, 8).local(4, 1)>
!raw = !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
!sum = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// Sums that may come to 2^22, that begin elsewhere, and that others use, are
// converted.
// CHECK-LABEL: lowlp.kernel @left
// CHECK-COUNT-3: lowlp.cast
// CHECK-NOT: lowlp.sub
// REMARK: remark: {{.*}}float-sums{{.*}}sums may come to 8355840 or more, which is not less than 2^22
// REMARK: remark: {{.*}}float-sums{{.*}}the products are not added to zeros
// REMARK: remark: {{.*}}float-sums{{.*}}sums of the products are used elsewhere too
lowlp.kernel @left(%px: !lowlp.ptr<si8>, %pw: !lowlp.ptr<ui8>, %ps: !lowlp.ptr<si32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %va = lowlp.view_global %pw shape [16, 256] : !lowlp.ptr<ui8> -> !lowlp.global<16x256xui8>
  %vb = lowlp.view_global %px shape [256, 8] : !lowlp.ptr<si8> -> !lowlp.global<256x8xsi8>
  %vs = lowlp.view_global %ps shape [16, 8] : !lowlp.ptr<si32> -> !lowlp.global<16x8xsi32>
  %a = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x256xui8> -> !a
  %b = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<256x8xsi8> -> !b
  %c = lowlp.load_global %va[%c0, %c0] in_bounds : !lowlp.global<16x256xui8> -> !few
  %d = lowlp.load_global %vb[%c0, %c0] in_bounds : !lowlp.global<256x8xsi8> -> !few_x
  %sums = lowlp.load_global %vs[%c0, %c0] in_bounds : !lowlp.global<16x8xsi32> -> !raw
  %zeros = lowlp.splat %c0_i32 : i32 -> !raw
  %large = lowlp.dot %a, %b, %zeros : !a, !b, !raw
  %1 = lowlp.cast %large : !raw -> !sum
  "test.large"(%1) : (!sum) -> ()
  %other = lowlp.dot %c, %d, %sums : !few, !few_x, !raw
  %2 = lowlp.cast %other : !raw -> !sum
  "test.other"(%2) : (!sum) -> ()
  %used = lowlp.dot %a, %b, %zeros : !a, !b, !raw
  %3 = lowlp.cast %used : !raw -> !sum
  "test.used"(%3) : (!sum) -> ()
  "test.raw"(%used) : (!raw) -> ()
  lowlp.return
}

// -----

!halves = !lowlp.tile<32x128xsi8, spatial(1, 2).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 4)>
!of_halves = !lowlp.tile<128x8xsi8, spatial(2, 1).local(2, 1).local(2, 1).column_spatial(4, 8).local(4, 1)>
!slices = !lowlp.tile<64x8xsi32, spatial(2, 1).local(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>
!sums = !lowlp.tile<64x8xf32, spatial(2, 1).local(2, 1).local(2, 1).spatial(8, 4).local(1, 2)>

// A product of 128 along K by two slices adds 64 products of signed bytes to a sum, which come to 2^20: three may be taken, and
// four, 2^22, are one too many. Sums that begin at another number than 0 are left.
// CHECK-LABEL: lowlp.kernel @bounds
// CHECK: %[[THREE:.*]] = lowlp.sub
// CHECK: "test.three"(%[[THREE]])
// CHECK: %[[FOUR:.*]] = lowlp.cast
// CHECK: "test.four"(%[[FOUR]])
// CHECK: %[[ONE:.*]] = lowlp.cast
// CHECK: "test.from_one"(%[[ONE]])
// REMARK: remark: {{.*}}float-sums{{.*}}sums may come to 4194304 or more
// REMARK: remark: {{.*}}float-sums{{.*}}the products are not added to zeros
lowlp.kernel @bounds(%px: !lowlp.ptr<si8>) attributes {grid = affine_map<() -> (1)>, num_threads = 64 : i64} {
  %c0 = arith.constant 0 : index
  %c0_i32 = arith.constant 0 : i32
  %v = lowlp.view_global %px shape [128, 128] : !lowlp.ptr<si8> -> !lowlp.global<128x128xsi8>
  %h = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<128x128xsi8> -> !halves
  %hx = lowlp.load_global %v[%c0, %c0] in_bounds : !lowlp.global<128x128xsi8> -> !of_halves
  %zeros = lowlp.splat %c0_i32 : i32 -> !slices
  %s1 = lowlp.dot %h, %hx, %zeros : !halves, !of_halves, !slices
  %s2 = lowlp.dot %h, %hx, %s1 : !halves, !of_halves, !slices
  %s3 = lowlp.dot %h, %hx, %s2 : !halves, !of_halves, !slices
  %three = lowlp.cast %s3 : !slices -> !sums
  "test.three"(%three) : (!sums) -> ()
  %t1 = lowlp.dot %h, %hx, %zeros : !halves, !of_halves, !slices
  %t2 = lowlp.dot %h, %hx, %t1 : !halves, !of_halves, !slices
  %t3 = lowlp.dot %h, %hx, %t2 : !halves, !of_halves, !slices
  %t4 = lowlp.dot %h, %hx, %t3 : !halves, !of_halves, !slices
  %four = lowlp.cast %t4 : !slices -> !sums
  "test.four"(%four) : (!sums) -> ()
  %one = arith.constant 1 : i32
  %ones = lowlp.splat %one : i32 -> !slices
  %u = lowlp.dot %h, %hx, %ones : !halves, !of_halves, !slices
  %from_one = lowlp.cast %u : !slices -> !sums
  "test.from_one"(%from_one) : (!sums) -> ()
  lowlp.return
}
