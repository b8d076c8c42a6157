// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!a = !lowlp.tile<64x64xf16, spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!c = !lowlp.tile<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!accumulators = !lowlp.accumulators<64x16xf32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
!b = !lowlp.shared<3x16x64xf16, local(3, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>
lowlp.kernel @product() attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f32
  %a = lowlp.splat %one : f16 -> !a
  %c = lowlp.splat %zero : f32 -> !c
  %b = lowlp.alloc_shared : !b
  // CHECK: %[[S:.*]] = lowlp.wgmma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : !lowlp.tile<64x64xf16, {{.*}}>, !lowlp.shared<3x16x64xf16, {{.*}}> -> !lowlp.accumulators<64x16xf32, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)>
  %s = lowlp.wgmma %a, %b[%c0, %c0, %c0] : !a, !b -> !accumulators
  // CHECK: %[[T:.*]] = lowlp.wgmma %{{.*}}, %{{.*}}[%{{.*}}] plus %[[S]] : !lowlp.accumulators<64x16xf32, {{.*}}> :
  %t = lowlp.wgmma %a, %b[%c8, %c0, %c0] plus %s : !accumulators : !a, !b -> !accumulators
  // CHECK: lowlp.wgmma_commit
  lowlp.wgmma_commit
  // CHECK: lowlp.give_turn first{{$}}
  lowlp.give_turn first
  // CHECK: lowlp.take_turn{{$}}
  lowlp.take_turn
  // CHECK: lowlp.give_turn{{$}}
  lowlp.give_turn
  // CHECK: %[[U:.*]] = lowlp.wgmma %{{.*}}, %{{.*}}[%{{.*}}] plus %{{.*}} : !lowlp.tile<64x16xf32, {{.*}}> :
  %u = lowlp.wgmma %a, %b[%c0, %c0, %c0] plus %c : !c : !a, !b -> !accumulators
  lowlp.wgmma_commit
  // CHECK: lowlp.wgmma_wait 1 takes %[[T]] : (!lowlp.accumulators<64x16xf32, {{.*}}>) -> !lowlp.tile<64x16xf32, {{.*}}>
  %d = lowlp.wgmma_wait 1 takes %t : (!accumulators) -> !c
  // CHECK: lowlp.wgmma_wait 0 takes %[[U]]
  %e = lowlp.wgmma_wait 0 takes %u : (!accumulators) -> !c
  lowlp.return
}

// Words of 32 bits of K.
// CHECK-LABEL: lowlp.kernel @bits
lowlp.kernel @bits(%p: !lowlp.ptr<ui32>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [4, 32, 4] : !lowlp.ptr<ui32> -> !lowlp.global<4x32x4xui32>
  %words = lowlp.load_global %v[%c0, %c0, %c0] : !lowlp.global<4x32x4xui32> -> !lowlp.tile<4x32x4xui32, spatial(4, 32, 1).local(1, 1, 4)>
  %a = lowlp.view %words : !lowlp.tile<4x32x4xui32, spatial(4, 32, 1).local(1, 1, 4)> -> !lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>
  %b = lowlp.alloc_shared : !lowlp.shared<16x8xui32, swizzle(local(16, 2), dim=1, log_step=2).local(1, 4)>
  // CHECK: lowlp.wgmma %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : !lowlp.tile<64x256xui1, {{.*}}>, !lowlp.shared<16x8xui32, {{.*}}> -> !lowlp.accumulators<64x16xsi32,
  %s = lowlp.wgmma %a, %b[%c0, %c0] : !lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>, !lowlp.shared<16x8xui32, swizzle(local(16, 2), dim=1, log_step=2).local(1, 4)> -> !lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  lowlp.wgmma_commit
  %d = lowlp.wgmma_wait 0 takes %s : (!lowlp.accumulators<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>) -> !lowlp.tile<64x16xsi32, spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>
  lowlp.return
}
