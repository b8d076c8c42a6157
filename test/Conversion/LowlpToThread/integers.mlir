// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

!si16 = !lowlp.tile<64xsi16, spatial(32).local(2)>
!ui16 = !lowlp.tile<64xui16, spatial(32).local(2)>
!si32 = !lowlp.tile<64xsi32, spatial(32).local(2)>
!ui32 = !lowlp.tile<64xui32, spatial(32).local(2)>
!f32 = !lowlp.tile<64xf32, spatial(32).local(2)>
!bf16 = !lowlp.tile<64xbf16, spatial(32).local(2)>
!bits = !lowlp.tile<64xui1, spatial(32).local(2)>

// The type decides how numbers are compared; the registers have no sign.
// CHECK-LABEL: gpu.func @signs
// CHECK: simt.load %{{.*}} align 8 : <global> -> vector<2xi32>
// CHECK: simt.load %{{.*}} align 8 : <global> -> vector<2xi32>
// CHECK: arith.minsi
// CHECK: arith.maxui
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi ult
// CHECK: simt.store %{{.*}} align 8 : vector<2xi32>
lowlp.kernel @signs(%p: !lowlp.ptr<si32> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<ui32> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<si32> -> !lowlp.global<64xsi32>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<ui32> -> !lowlp.global<64xui32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xsi32> -> !si32
  %b = lowlp.load_global %w[%c0] in_bounds : !lowlp.global<64xui32> -> !ui32
  %i = lowlp.iota dim 0 : !si32
  %j = lowlp.iota dim 0 : !ui32
  %c = lowlp.minimum %a, %i : !si32
  %d = lowlp.maximum %b, %j : !ui32
  %e = lowlp.compare lt %c, %i : !si32 -> !bits
  %f = lowlp.compare lt %d, %j : !ui32 -> !bits
  %g = lowlp.select %e, %c, %a : !bits, !si32
  %h = lowlp.select %f, %d, %b : !bits, !ui32
  lowlp.store_global %g, %v[%c0] in_bounds : !si32, !lowlp.global<64xsi32>
  lowlp.store_global %h, %w[%c0] in_bounds : !ui32, !lowlp.global<64xui32>
  lowlp.return
}

// Between integers a cast clamps, where the other type holds less.
// CHECK-LABEL: gpu.func @clamped
// CHECK-DAG: %[[LOW:.*]] = arith.constant -32768 : i32
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 32767 : i32
// CHECK: %[[MORE:.*]] = arith.maxsi %[[X:.*]], %[[LOW]] : i32
// CHECK: %[[LESS:.*]] = arith.minsi %[[MORE]], %[[HIGH]] : i32
// CHECK: arith.trunci %[[LESS]] : i32 to i16
lowlp.kernel @clamped(%p: !lowlp.ptr<si32>, %q: !lowlp.ptr<si16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<si32> -> !lowlp.global<64xsi32>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<si16> -> !lowlp.global<64xsi16>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xsi32> -> !si32
  %b = lowlp.cast %a : !si32 -> !si16
  lowlp.store_global %b, %w[%c0] in_bounds : !si16, !lowlp.global<64xsi16>
  lowlp.return
}

// A wider type needs no test.
// CHECK-LABEL: gpu.func @widened
// CHECK-NOT: arith.m{{ax|in}}
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK-NOT: arith.m{{ax|in}}
// CHECK: simt.store %{{.*}} : vector<2xi32>
lowlp.kernel @widened(%p: !lowlp.ptr<ui16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<si32> {lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui16> -> !lowlp.global<64xui16>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<si32> -> !lowlp.global<64xsi32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui16> -> !ui16
  %b = lowlp.cast %a : !ui16 -> !si32
  lowlp.store_global %b, %w[%c0] in_bounds : !si32, !lowlp.global<64xsi32>
  lowlp.return
}

// To an integer: nearest even, then the bounds, both of which are floats.
// CHECK-LABEL: gpu.func @rounded
// CHECK-DAG: %[[MAX:.*]] = arith.constant 2147483647 : i32
// CHECK-DAG: %[[MIN:.*]] = arith.constant -2147483648 : i32
// CHECK-DAG: %[[END:.*]] = arith.constant 2.14748365E+9 : f32
// CHECK: arith.cmpf uno
// CHECK: %[[R:.*]] = math.roundeven %{{.*}} : f32
// CHECK: %[[I:.*]] = arith.fptosi %[[R]] : f32 to i32
// CHECK: arith.cmpf olt, %[[R]]
// CHECK: %[[ISHIGH:.*]] = arith.cmpf oge, %[[R]], %[[END]]
// CHECK: %[[ABOVE:.*]] = arith.select %{{.*}}, %[[MIN]], %[[I]]
// CHECK: arith.select %[[ISHIGH]], %[[MAX]], %[[ABOVE]]
lowlp.kernel @rounded(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<si32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f32> -> !lowlp.global<64xf32>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<si32> -> !lowlp.global<64xsi32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xf32> -> !f32
  %b = lowlp.cast %a : !f32 -> !si32
  lowlp.store_global %b, %w[%c0] in_bounds : !si32, !lowlp.global<64xsi32>
  lowlp.return
}

// Towards floats narrower than f32 a long integer is rounded to odd first, so that the last rounding is the only one.
// CHECK-LABEL: gpu.func @odd
// CHECK-DAG: %[[MASK:.*]] = arith.constant 255 : i32
// CHECK-DAG: %[[KEEP:.*]] = arith.constant -256 : i32
// CHECK-DAG: %[[LONG:.*]] = arith.constant 16777216 : i32
// CHECK: %[[LOWBITS:.*]] = arith.andi %[[X:.*]], %[[MASK]]
// CHECK: %[[CARRY:.*]] = arith.addi %[[LOWBITS]], %[[MASK]]
// CHECK: %[[OR:.*]] = arith.ori %[[X]], %[[CARRY]]
// CHECK: %[[KEPT:.*]] = arith.andi %[[OR]], %[[KEEP]]
// CHECK: %[[IS:.*]] = arith.cmpi uge, %[[X]], %[[LONG]]
// CHECK: %[[ODD:.*]] = arith.select %[[IS]], %[[KEPT]], %[[X]]
// CHECK: arith.uitofp %[[ODD]] : i32 to
lowlp.kernel @odd(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui32> -> !lowlp.global<64xui32>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<bf16> -> !lowlp.global<64xbf16>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui32> -> !ui32
  %b = lowlp.cast %a : !ui32 -> !bf16
  lowlp.store_global %b, %w[%c0] in_bounds : !bf16, !lowlp.global<64xbf16>
  lowlp.return
}

// CHECK-LABEL: gpu.func @reduced
// CHECK: arith.maxui %{{.*}} : i32
// CHECK: gpu.shuffle xor %{{.*}} : i32
// CHECK: arith.maxui %{{.*}} : i32
lowlp.kernel @reduced(%p: !lowlp.ptr<ui32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui32> -> !lowlp.global<64xui32>
  %a = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui32> -> !ui32
  %m = lowlp.reduce max %a dim 0 : !ui32 -> !lowlp.tile<1xui32, reduce(spatial(32), dims=[0], keep_dims=True)>
  lowlp.store_global %m, %v[%c0] in_bounds : !lowlp.tile<1xui32, reduce(spatial(32), dims=[0], keep_dims=True)>,
      !lowlp.global<64xui32>
  lowlp.return
}

// A view between packed and wide elements, and a number taken from 0.
// CHECK-LABEL: gpu.func @viewed
// CHECK: %[[ZERO:.*]] = arith.constant dense<0> : vector<2xi16>
// CHECK: %[[HALVES:.*]] = vector.bitcast %{{.*}} : vector<1xi32> to vector<2xi16>
// CHECK: arith.subi %[[ZERO]], %[[HALVES]] : vector<2xi16>
// CHECK: math.absi
lowlp.kernel @viewed(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<si16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [128] : !lowlp.ptr<ui8> -> !lowlp.global<128xui8>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<si16> -> !lowlp.global<64xsi16>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<128xui8> -> !lowlp.tile<128xui8, spatial(32).local(4)>
  %b = lowlp.view %a : !lowlp.tile<128xui8, spatial(32).local(4)> -> !si16
  %c = lowlp.neg %b : !si16
  %d = lowlp.abs %c : !si16
  lowlp.store_global %d, %w[%c0] : !si16, !lowlp.global<64xsi16>
  lowlp.return
}
