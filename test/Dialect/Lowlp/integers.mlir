// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!si16 = !lowlp.tile<64xsi16, spatial(32).local(2)>
!ui32 = !lowlp.tile<64xui32, spatial(32).local(2)>
!bits = !lowlp.tile<64xui1, spatial(32).local(2)>

// CHECK-LABEL: func.func @wide
func.func @wide(%p: !lowlp.ptr<ui32>, %x: i32, %h: i16, %s: !lowlp.shared<64xsi16>) -> !ui32 {
  %c0 = arith.constant 0 : index
  // CHECK: !lowlp.global<64xui32>
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui32> -> !lowlp.global<64xui32>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<64xui32> -> !ui32
  // CHECK: lowlp.splat %{{.*}} : i32 -> !lowlp.tile<64xui32, spatial(32).local(2)>
  %b = lowlp.splat %x : i32 -> !ui32
  // CHECK: lowlp.splat %{{.*}} : i16 -> !lowlp.tile<64xsi16, spatial(32).local(2)>
  %c = lowlp.splat %h : i16 -> !si16
  %d = lowlp.load_shared %s[%c0] : !lowlp.shared<64xsi16> -> !si16
  %e = lowlp.add %c, %d : !si16
  %f = lowlp.neg %e : !si16
  %g = lowlp.abs %f : !si16
  // CHECK: lowlp.cast %{{.*}} : !lowlp.tile<64xsi16, spatial(32).local(2)> -> !lowlp.tile<64xui32, spatial(32).local(2)>
  %i = lowlp.cast %g : !si16 -> !ui32
  %j = lowlp.minimum %a, %i : !ui32
  %k = lowlp.maximum %j, %b : !ui32
  // CHECK: lowlp.compare lt %{{.*}} : !lowlp.tile<64xui32, spatial(32).local(2)> -> !lowlp.tile<64xui1, spatial(32).local(2)>
  %l = lowlp.compare lt %k, %a : !ui32 -> !bits
  // CHECK: lowlp.iota dim 0 : !lowlp.tile<64xui32, spatial(32).local(2)>
  %m = lowlp.iota dim 0 : !ui32
  %n = lowlp.select %l, %m, %a : !bits, !ui32
  // CHECK: lowlp.reduce max
  %o = lowlp.reduce max %n dim 0 : !ui32 -> !lowlp.tile<1xui32, reduce(spatial(32), dims=[0], keep_dims=True)>
  %q = lowlp.broadcast %o : !lowlp.tile<1xui32, reduce(spatial(32), dims=[0], keep_dims=True)> -> !ui32
  return %q : !ui32
}
