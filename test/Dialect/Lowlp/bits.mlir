// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

!ui4 = !lowlp.tile<64xui4, spatial(32).local(2)>
!si32 = !lowlp.tile<64xsi32, spatial(32).local(2)>
!ui16 = !lowlp.tile<64xui16, spatial(32).local(2)>

// CHECK-LABEL: func.func @bits
func.func @bits(%a: !ui4, %b: !ui4, %x: !si32, %y: !si32, %h: !ui16) -> (!si32, !si32, !ui16) {
  // CHECK: lowlp.and %{{.*}}, %{{.*}} : !lowlp.tile<64xui4, spatial(32).local(2)>
  %0 = lowlp.and %a, %b : !ui4
  %1 = lowlp.or %0, %b : !ui4
  %2 = lowlp.xor %1, %a : !ui4
  %3 = lowlp.not %2 : !ui4
  %4 = lowlp.shl %3, %a : !ui4
  %5 = lowlp.shr %4, %b : !ui4
  // CHECK: lowlp.popcount %{{.*}} : !lowlp.tile<64xui4, spatial(32).local(2)> -> !lowlp.tile<64xsi32, spatial(32).local(2)>
  %6 = lowlp.popcount %5 : !ui4 -> !si32
  %7 = lowlp.count_leading_zeros %5 : !ui4 -> !si32
  // CHECK: lowlp.funnel_shift left clamp %{{.*}}, %{{.*}}, %{{.*}} : !lowlp.tile<64xsi32, spatial(32).local(2)>
  %8 = lowlp.funnel_shift left clamp %x, %y, %6 : !si32
  // CHECK: lowlp.funnel_shift right wrap
  %9 = lowlp.funnel_shift right wrap %x, %y, %7 : !si32
  // CHECK: lowlp.floor_div
  %10 = lowlp.floor_div %8, %9 : !si32
  // CHECK: lowlp.mod
  %11 = lowlp.mod %h, %h : !ui16
  return %9, %10, %11 : !si32, !si32, !ui16
}
