// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!row = !lowlp.tile<64xsi32, spatial(32).local(2)>

// CHECK-LABEL: lowlp.kernel @order
lowlp.kernel @order(%p: !lowlp.ptr<si32>, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %i = lowlp.block_indices : index
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<64xsi32>
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<si32> -> !lowlp.global<64xsi32>
  // CHECK: lowlp.alloc_global shape affine_map<(d0) -> (d0 ceildiv 16, 128)> : !lowlp.ptr<si32>
  %scratch = lowlp.alloc_global shape affine_map<(m) -> (m ceildiv 16, 128)> : !lowlp.ptr<si32>
  // CHECK: lowlp.alloc_global shape affine_map{{.*}} zeroed {test.note} : !lowlp.ptr<si32>
  %words = lowlp.alloc_global shape affine_map<(m) -> (m)> zeroed {test.note} : !lowlp.ptr<si32>
  %n = arith.index_cast %m : i32 to index
  %locks = lowlp.view_global %words shape [%n] : !lowlp.ptr<si32> -> !lowlp.global<?xsi32>
  // CHECK: lowlp.semaphore_acquire %{{.*}}[%{{.*}}], %{{.*}} : !lowlp.global<?xsi32>
  lowlp.semaphore_acquire %locks[%i], %c0 : !lowlp.global<?xsi32>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<64xsi32> -> !row
  // CHECK: lowlp.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : !lowlp.tile<64xsi32, spatial(32).local(2)>, !lowlp.global<64xsi32>
  lowlp.atomic_rmw add %t, %v[%c0] : !row, !lowlp.global<64xsi32>
  // CHECK: %{{.*}} = lowlp.atomic_rmw max %{{.*}}, %{{.*}}[%{{.*}}] : !lowlp.tile<64xsi32, spatial(32).local(2)>, !lowlp.shared<64xsi32> -> !lowlp.tile<64xsi32, spatial(32).local(2)>
  %old = lowlp.atomic_rmw max %t, %s[%c0] : !row, !lowlp.shared<64xsi32> -> !row
  // CHECK: lowlp.semaphore_release %{{.*}}[%{{.*}}], %{{.*}} : !lowlp.global<?xsi32>
  lowlp.semaphore_release %locks[%i], %c0 : !lowlp.global<?xsi32>
  // CHECK: lowlp.semaphore_release add %{{.*}}[%{{.*}}], %{{.*}} : !lowlp.global<?xsi32>
  lowlp.semaphore_release add %locks[%i], %c0 : !lowlp.global<?xsi32>
  // CHECK: lowlp.wait_for_dependencies{{$}}
  lowlp.wait_for_dependencies
  // CHECK: lowlp.launch_dependents{{$}}
  lowlp.launch_dependents
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @cluster
// CHECK-SAME: schedule = #lowlp.schedule<cluster = 2>
lowlp.kernel @cluster(%m: i32) attributes {grid = affine_map<(m) -> (m * 4)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : f32
  %t = lowlp.splat %zero : f32 -> !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  %s = lowlp.alloc_shared : !lowlp.shared<36xsi32>
  // CHECK: lowlp.exchange_in_cluster %{{.*}} : !lowlp.tile<2x32xf32, spatial(1, 32).local(2, 1)>
  %a = lowlp.exchange_in_cluster %t : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
  // CHECK: lowlp.exchange_in_cluster %{{.*}} through %{{.*}} : !lowlp.tile<2x32xf32, spatial(1, 32).local(2, 1)> through !lowlp.shared<36xsi32>
  %b = lowlp.exchange_in_cluster %t through %s : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)> through !lowlp.shared<36xsi32>
  lowlp.return
}
