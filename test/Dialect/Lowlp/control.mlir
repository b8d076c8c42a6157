// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: lowlp.kernel @control
lowlp.kernel @control(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %b = lowlp.block_indices : index
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<2>
  // CHECK: lowlp.producer_warp {
  // CHECK-NEXT: lowlp.wait_for_dependencies
  // CHECK-NEXT: lowlp.mbarrier_expect_bytes
  // CHECK-NEXT: } {test.note}
  lowlp.producer_warp {
    lowlp.wait_for_dependencies
    lowlp.mbarrier_expect_bytes %full[%b] bytes 64 : !lowlp.mbarriers<2>
  } {test.note}
  // CHECK: lowlp.first_thread {
  // CHECK-NEXT: lowlp.mbarrier_wait
  // CHECK-NEXT: }
  lowlp.first_thread {
    lowlp.mbarrier_wait %full[%b] parity %b : !lowlp.mbarriers<2>
  }
  %c4 = arith.constant 4 : index
  %done = arith.cmpi sge, %b, %c4 : index
  // CHECK: lowlp.assume %{{.*}}, "not too many"
  lowlp.assume %done, "not too many"
  // CHECK: lowlp.assume_divisible %{{.*}} by 8
  %m = lowlp.assume_divisible %b by 8
  // CHECK: lowlp.print "nothing"
  lowlp.print "nothing"
  // CHECK: lowlp.print "block {} of {}, {}" %{{.*}}, %{{.*}}, %{{.*}} : index, i32, i1 all_blocks
  lowlp.print "block {} of {}, {}" %m, %n, %done : index, i32, i1 all_blocks
  %zero = arith.constant 0.0 : f32
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<32xf32, spatial(32)>
  // CHECK: lowlp.print_tile "t", %{{.*}} : !lowlp.tile<32xf32, spatial(32)>
  lowlp.print_tile "t", %t : !lowlp.tile<32xf32, spatial(32)>
  scf.if %done {
    // CHECK: lowlp.exit
    lowlp.exit
  }
  lowlp.return
}
