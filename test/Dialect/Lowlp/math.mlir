// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

!tile = !lowlp.tile<96xbf16, local(3).spatial(32)>
!codes = !lowlp.tile<96xsi6, local(3).spatial(32)>
!bits = !lowlp.tile<96xui1, local(3).spatial(32)>

// CHECK-LABEL: func.func @functions
// CHECK-SAME: %[[A:.*]]: !lowlp.tile<96xbf16, local(3).spatial(32)>, %[[B:.*]]: !lowlp.tile
func.func @functions(%a: !tile, %b: !tile) -> !tile {
  // CHECK: %[[MIN:.*]] = lowlp.minimum %[[A]], %[[B]] : !lowlp.tile<96xbf16, local(3).spatial(32)>
  %min = lowlp.minimum %a, %b : !tile
  // CHECK: %[[MAX:.*]] = lowlp.maximum %[[MIN]], %[[B]] : !lowlp.tile
  %max = lowlp.maximum %min, %b : !tile
  // CHECK: %[[ABS:.*]] = lowlp.abs %[[MAX]] : !lowlp.tile<96xbf16, local(3).spatial(32)>
  %abs = lowlp.abs %max : !tile
  // CHECK: %[[EXP:.*]] = lowlp.exp %[[ABS]] : !lowlp.tile
  %exp = lowlp.exp %abs : !tile
  // CHECK: %[[EXP2:.*]] = lowlp.exp2 %[[EXP]] : !lowlp.tile
  %exp2 = lowlp.exp2 %exp : !tile
  // CHECK: %[[LOG2:.*]] = lowlp.log2 %[[EXP2]] : !lowlp.tile
  %log2 = lowlp.log2 %exp2 : !tile
  // CHECK: %[[SQRT:.*]] = lowlp.sqrt %[[LOG2]] : !lowlp.tile
  %sqrt = lowlp.sqrt %log2 : !tile
  // CHECK: %[[RSQRT:.*]] = lowlp.rsqrt %[[SQRT]] : !lowlp.tile
  %rsqrt = lowlp.rsqrt %sqrt : !tile
  // CHECK: lowlp.tanh %[[RSQRT]] : !lowlp.tile
  // GENERIC: "lowlp.tanh"(%{{.*}}) : (!lowlp.tile
  %tanh = lowlp.tanh %rsqrt : !tile
  // CHECK: lowlp.fma %{{.*}}, %[[A]], %[[B]] : !lowlp.tile<96xbf16, local(3).spatial(32)>
  // GENERIC: "lowlp.fma"(%{{.*}}, %{{.*}}, %{{.*}}) : (!lowlp.tile
  %fma = lowlp.fma %tanh, %a, %b : !tile
  return %fma : !tile
}

// CHECK-LABEL: func.func @rescaled
func.func @rescaled(%a: !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)>, %f: !lowlp.tile<32x1xf32, spatial(32, 1)>) -> !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)> {
  // CHECK: lowlp.rescale %{{.*}}, %{{.*}} : !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)>, !lowlp.tile<32x1xf32, spatial(32, 1)>
  // GENERIC: "lowlp.rescale"(%{{.*}}, %{{.*}}) : (!lowlp.tile
  %d = lowlp.rescale %a, %f : !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)>, !lowlp.tile<32x1xf32, spatial(32, 1)>
  return %d : !lowlp.tile<32x2xf32, spatial(32, 1).local(1, 2)>
}

// CHECK-LABEL: func.func @choices
func.func @choices(%a: !tile, %b: !tile, %q: !codes, %r: !codes) -> (!tile, !codes) {
  // CHECK: lowlp.compare eq %{{.*}}, %{{.*}} : !lowlp.tile<96xbf16, local(3).spatial(32)> -> !lowlp.tile<96xui1, local(3).spatial(32)>
  // GENERIC: "lowlp.compare"(%{{.*}}, %{{.*}}) <{predicate = 0 : i32}>
  %eq = lowlp.compare eq %a, %b : !tile -> !bits
  // CHECK: lowlp.compare ne
  %ne = lowlp.compare ne %a, %b : !tile -> !bits
  // CHECK: lowlp.compare lt
  %lt = lowlp.compare lt %a, %b : !tile -> !bits
  // CHECK: lowlp.compare le
  %le = lowlp.compare le %a, %b : !tile -> !bits
  // CHECK: lowlp.compare gt
  %gt = lowlp.compare gt %a, %b : !tile -> !bits
  // CHECK: %[[GE:.*]] = lowlp.compare ge
  // GENERIC: "lowlp.compare"(%{{.*}}, %{{.*}}) <{predicate = 5 : i32}>
  %ge = lowlp.compare ge %a, %b : !tile -> !bits
  // CHECK: lowlp.select %[[GE]], %{{.*}}, %{{.*}} : !lowlp.tile<96xui1, local(3).spatial(32)>, !lowlp.tile<96xbf16, local(3).spatial(32)>
  %floats = lowlp.select %ge, %a, %b : !bits, !tile
  // CHECK: lowlp.select %{{.*}} : !lowlp.tile<96xui1, {{.*}}>, !lowlp.tile<96xsi6,
  %codes = lowlp.select %lt, %q, %r : !bits, !codes
  return %floats, %codes : !tile, !codes
}
