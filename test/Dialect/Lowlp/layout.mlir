// RUN: lowlp-opt %s --split-input-file --allow-unregistered-dialect --verify-roundtrip | FileCheck %s

// The layouts of the papers, as they write them: A of mma.m16n8k8, then a, b and c of m16n8k16.

#c = #lowlp.layout<local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-LABEL: "test.papers"
// CHECK-SAME: a = #lowlp.layout<column_local(2, 2).spatial(8, 4).local(1, 2)>
// CHECK-SAME: b = #lowlp.layout<local(2, 1).column_spatial(4, 8).local(2, 1)>
// CHECK-SAME: bytes = #lowlp.layout<local(3).spatial(32)>
// CHECK-SAME: c = #lowlp.layout<local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK-SAME: readme = #lowlp.layout<spatial(2, 4).local(2, 1)>
"test.papers"() {
  a = #lowlp.layout<column_local(2, 2).spatial(8, 4).local(1, 2)>,
  b = #lowlp.layout<local(2, 1).column_spatial(4, 8).local(2, 1)>,
  bytes = #lowlp.layout<local(3).spatial(32)>,
  c = #c,
  readme = #lowlp.layout<spatial(2, 4).local(2, 1)>
} : () -> ()

// -----

// One function has one text, whatever it was written as: factors of extent 1 go, neighbours join, `repeat` is `local`.
// CHECK-LABEL: "test.canonical"
// CHECK-SAME: column = #lowlp.layout<local(4, 1)>
// CHECK-SAME: joined = #lowlp.layout<local(6)>
// CHECK-SAME: repeat = #lowlp.layout<local(2, 3)>
// CHECK-SAME: spaces = #lowlp.layout<spatial(2, 4).local(2, 1)>
// CHECK-SAME: unit = #lowlp.layout<spatial(8, 4)>
"test.canonical"() {
  column = #lowlp.layout<column_local(4, 1)>,
  joined = #lowlp.layout<local(2).local(3)>,
  repeat = #lowlp.layout<repeat(2, 3)>,
  spaces = #lowlp.layout<  spatial( 2,4 ) . local(2 , 1)  >,
  unit = #lowlp.layout<local(1, 1).spatial(8, 4).local(1, 1)>
} : () -> ()

// -----

// CHECK-LABEL: "test.changes"
// CHECK-SAME: broadcast = #lowlp.layout<local(1, 4)>
// CHECK-SAME: permute = #lowlp.layout<column_spatial(4, 2)>
// CHECK-SAME: reduce = #lowlp.layout<reduce(spatial(1, 1, 8), dims=[2]).spatial(1, 4)>
// CHECK-SAME: reshape = #lowlp.layout<spatial(32)>
// CHECK-SAME: squeeze = #lowlp.layout<local(4)>
// CHECK-SAME: unsqueeze = #lowlp.layout<local(1, 4)>
"test.changes"() {
  broadcast = #lowlp.layout<local(4).broadcast(2)>,
  permute = #lowlp.layout<spatial(2, 4).permute(1, 0)>,
  reduce = #lowlp.layout<reduce(spatial(8, 4), dims=[0], keep_dims=True)>,
  reshape = #lowlp.layout<spatial(8, 4).reshape(32)>,
  squeeze = #lowlp.layout<local(1, 4).squeeze(0)>,
  unsqueeze = #lowlp.layout<local(4).unsqueeze(0)>
} : () -> ()

// -----

// A layout in a type is read the same way, and two texts of one function are one type.
// CHECK-LABEL: "test.type"
// CHECK-SAME: !lowlp.tile<32xsi6, spatial(32)>, !lowlp.tile<32xsi6, spatial(32)>
// CHECK-SAME: !lowlp.tile<4xf16, reduce(spatial(1, 8), dims=[1]).spatial(4)>
"test.type"() : () -> (!lowlp.tile<32xsi6, spatial(8, 4).reshape(32)>, !lowlp.tile<32xsi6, spatial(4).spatial(8)>,
                       !lowlp.tile<4xf16, spatial(8, 4).reduce(dims=[0])>)
