// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!ui4 = !lowlp.tile<96xui4, spatial(32).local(3)>
!si8 = !lowlp.tile<32xsi8, spatial(32)>
!one32 = !lowlp.tile<32xsi32, spatial(32)>
!ui32 = !lowlp.tile<32xui32, spatial(32)>

// Whole words at once; the bits above three codes stay zero.
// CHECK-LABEL: gpu.func @words
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<4095> : vector<1xi32>
// CHECK: %[[AND:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<1xi32>
// CHECK: %[[OR:.*]] = arith.ori %[[AND]], %{{.*}} : vector<1xi32>
// CHECK: %[[XOR:.*]] = arith.xori %[[OR]], %{{.*}} : vector<1xi32>
// CHECK: arith.xori %[[XOR]], %[[ONES]] : vector<1xi32>
lowlp.kernel @words(%p: !lowlp.ptr<ui4>, %q: !lowlp.ptr<ui4>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<ui4> -> !lowlp.global<96xui4>
  %w = lowlp.view_global %q shape [96] : !lowlp.ptr<ui4> -> !lowlp.global<96xui4>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<96xui4> -> !ui4
  %b = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<96xui4> -> !ui4
  %0 = lowlp.and %a, %b : !ui4
  %1 = lowlp.or %0, %a : !ui4
  %2 = lowlp.xor %1, %b : !ui4
  %3 = lowlp.not %2 : !ui4
  lowlp.store_global %3, %v[%c0] in_bounds : !ui4, !lowlp.global<96xui4>
  lowlp.return
}

// To the right the sign of 8 bits comes along, and an amount of 8 bits without its own is bounded. To the left 32 bits
// or more leave 0.
// CHECK-LABEL: gpu.func @shifts
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
// CHECK-DAG: %[[C31:.*]] = arith.constant 31 : i32
// CHECK-DAG: %[[MASK:.*]] = arith.constant 255 : i32
// CHECK: %[[VALUE:.*]] = arith.shrsi %{{.*}}, %c24_i32 : i32
// CHECK: %[[MOST:.*]] = arith.minui %[[N:.*]], %[[C31]] : i32
// CHECK: %[[RIGHT:.*]] = arith.shrsi %[[VALUE]], %[[MOST]] : i32
// CHECK: %[[CODE:.*]] = arith.andi %[[RIGHT]], %[[MASK]] : i32
// CHECK: %[[LEFT:.*]] = arith.shli %{{.*}}, %[[N]] : i32
// CHECK: %[[FITS:.*]] = arith.cmpi ult, %[[N]], %[[C32]] : i32
// CHECK: arith.select %[[FITS]], %[[LEFT]], %{{.*}} : i32
lowlp.kernel @shifts(%p: !lowlp.ptr<si8>, %q: !lowlp.ptr<si8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si8> -> !lowlp.global<32xsi8>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<si8> -> !lowlp.global<32xsi8>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xsi8> -> !si8
  %n = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<32xsi8> -> !si8
  %0 = lowlp.shr %a, %n : !si8
  %1 = lowlp.shl %0, %n : !si8
  lowlp.store_global %1, %v[%c0] in_bounds : !si8, !lowlp.global<32xsi8>
  lowlp.return
}

// The zeros of 8 bits are those of 32 without the 24 above them.
// CHECK-LABEL: gpu.func @counts
// CHECK: %[[ONES:.*]] = math.ctpop %[[CODE:.*]] : i32
// CHECK: %[[ZEROS:.*]] = math.ctlz %[[CODE]] : i32
// CHECK: arith.subi %[[ZEROS]], %c24_i32 : i32
lowlp.kernel @counts(%p: !lowlp.ptr<si8>, %q: !lowlp.ptr<si32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si8> -> !lowlp.global<32xsi8>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<si32> -> !lowlp.global<32xsi32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xsi8> -> !si8
  %0 = lowlp.popcount %a : !si8 -> !one32
  %1 = lowlp.count_leading_zeros %a : !si8 -> !one32
  %2 = lowlp.add %0, %1 : !one32
  lowlp.store_global %2, %w[%c0] in_bounds : !one32, !lowlp.global<32xsi32>
  lowlp.return
}

// CHECK-LABEL: gpu.func @funnel
// CHECK: %[[LEFT:.*]] = simt.funnel_shift %[[LOW:.*]], %[[HIGH:.*]], %[[LOW]]
// CHECK-NOT: right
// CHECK: %[[RIGHT:.*]] = simt.funnel_shift %[[LEFT]], %[[HIGH]], %[[LOW]] right
// CHECK: %[[WHOLE:.*]] = arith.cmpi uge, %[[LOW]], %{{.*}} : i32
// CHECK: arith.select %[[WHOLE]], %[[HIGH]], %[[RIGHT]] : i32
lowlp.kernel @funnel(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<ui32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<ui32> -> !lowlp.global<32xui32>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<ui32> -> !lowlp.global<32xui32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xui32> -> !ui32
  %b = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<32xui32> -> !ui32
  %0 = lowlp.funnel_shift left wrap %a, %b, %a : !ui32
  %1 = lowlp.funnel_shift right clamp %0, %b, %a : !ui32
  lowlp.store_global %1, %v[%c0] in_bounds : !ui32, !lowlp.global<32xui32>
  lowlp.return
}

// Where the machine would trap it divides by 1 instead; a division by zero is reported before.
// CHECK-LABEL: gpu.func @quotient
// CHECK: %[[VALID:.*]] = arith.cmpi ne, %[[B:.*]], %c0_i32 : i32
// CHECK: simt.assert %[[VALID]], "division by zero"
// CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %c1_i32, %[[B]] : i32
// CHECK: %[[Q:.*]] = arith.divsi %[[A:.*]], %[[SAFE]] : i32
// CHECK: %[[R:.*]] = arith.remsi %[[A]], %[[SAFE]] : i32
// CHECK: arith.xori %[[R]], %[[SAFE]] : i32
// CHECK: %[[DOWN:.*]] = arith.subi %[[Q]], %c1_i32 : i32
// CHECK: arith.select %{{.*}}, %[[DOWN]], %[[Q]] : i32
lowlp.kernel @quotient(%p: !lowlp.ptr<si32>, %q: !lowlp.ptr<si32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si32> -> !lowlp.global<32xsi32>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<si32> -> !lowlp.global<32xsi32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xsi32> -> !one32
  %b = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<32xsi32> -> !one32
  %0 = lowlp.floor_div %a, %b : !one32
  lowlp.store_global %0, %v[%c0] in_bounds : !one32, !lowlp.global<32xsi32>
  lowlp.return
}

// A known divisor needs none of that.
// CHECK-LABEL: gpu.func @known
// CHECK-NOT: simt.assert %{{.*}}, "division by zero"
// CHECK: arith.remui %{{.*}}, %c7_i32 : i32
lowlp.kernel @known(%p: !lowlp.ptr<ui32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : i32
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<ui32> -> !lowlp.global<32xui32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xui32> -> !ui32
  %b = lowlp.splat %c7 : i32 -> !ui32
  %0 = lowlp.mod %a, %b : !ui32
  lowlp.store_global %0, %v[%c0] in_bounds : !ui32, !lowlp.global<32xui32>
  lowlp.return
}
