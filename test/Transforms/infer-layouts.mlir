// RUN: lowlp-opt %s --split-input-file --allow-unregistered-dialect --lowlp-infer-layouts | FileCheck %s
// RUN: lowlp-opt %s --split-input-file --allow-unregistered-dialect --lowlp-infer-layouts --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!rows_a = !lowlp.tile<16x32xf16, spatial(8, 4).local(2, 8)>
!rows_b = !lowlp.tile<32x8xf16, spatial(32, 1).local(1, 8)>
!rows_c = !lowlp.tile<16x8xf32, spatial(16, 2).local(1, 4)>
!rows_y = !lowlp.tile<16x8xf16, spatial(16, 2).local(1, 4)>
!bias = !lowlp.tile<8xf32, reduce(spatial(1, 16), dims=[1]).spatial(2).local(4)>
!a = !lowlp.tile<16x32xf16, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<32x8xf16, local(4, 1).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>

// What a front end makes of a product without layouts, with stages. Loads become fragments, as they are copied by lines of
// memory in any case; the accumulators are fragments in the loop and after it; the row of the epilogue follows from them, and the
// store takes what it gets.
// CHECK-LABEL: lowlp.kernel @product
// CHECK-SAME: lowlp.report = {layouts = ["conversions removed: 4, left: 0"]
// CHECK-NOT: lowlp.free_layout
// CHECK-NOT: lowlp.convert_layout
// CHECK: %[[INIT:.*]] = lowlp.splat %{{.*}} : f32 -> ![[C:lowlp.tile<16x8xf32, local\(2, 1\).spatial\(8, 4\).local\(1, 2\)>]]
// CHECK: %[[ACCUMULATORS:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[INIT]]) -> (![[C]])
// CHECK: %[[A:.*]] = lowlp.load_global {{.*}} -> !lowlp.tile<16x32xf16, column_local(2, 4).spatial(8, 4).local(1, 2)>
// CHECK: %[[B:.*]] = lowlp.load_global {{.*}} -> !lowlp.tile<32x8xf16, local(4, 1).column_spatial(4, 8).local(2, 1)>
// CHECK: %[[D:.*]] = lowlp.dot %[[A]], %[[B]], %[[ACC]]
// CHECK: scf.yield %[[D]] : ![[C]]
// CHECK: lowlp.load_global {{.*}} -> !lowlp.tile<8xf32, reduce(spatial(1, 8), dims=[1]).spatial(4).local(2)>
// CHECK: lowlp.splat %{{.*}} : f32 -> ![[C]]
// CHECK: lowlp.mul %[[ACCUMULATORS]], %{{.*}} : ![[C]]
// CHECK: lowlp.broadcast {{.*}} -> ![[C]]
// CHECK: lowlp.add {{.*}} : ![[C]]
// CHECK: %[[Y:.*]] = lowlp.cast {{.*}} -> !lowlp.tile<16x8xf16, local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK: lowlp.store_global %[[Y]],
lowlp.kernel @product(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<f16>, %pbias: !lowlp.ptr<f32>, %py: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %va = lowlp.view_global %pa shape [16, 1024] : !lowlp.ptr<f16> -> !lowlp.global<16x1024xf16>
  %vb = lowlp.view_global %pb shape [1024, 8] : !lowlp.ptr<f16> -> !lowlp.global<1024x8xf16>
  %vbias = lowlp.view_global %pbias shape [8] : !lowlp.ptr<f32> -> !lowlp.global<8xf32>
  %vy = lowlp.view_global %py shape [16, 8] : !lowlp.ptr<f16> -> !lowlp.global<16x8xf16>
  %init = lowlp.splat %zero {lowlp.free_layout} : f32 -> !rows_c
  %accumulators = scf.for %i = %c0 to %c32 step %c1 iter_args(%acc = %init) -> (!rows_c) {
    %k = arith.muli %i, %c32 : index
    %ra = lowlp.load_global %va[%c0, %k] {lowlp.free_layout} : !lowlp.global<16x1024xf16> -> !rows_a
    %rb = lowlp.load_global %vb[%k, %c0] {lowlp.free_layout} : !lowlp.global<1024x8xf16> -> !rows_b
    %a = lowlp.convert_layout %ra {lowlp.free_layout} : !rows_a -> !a
    %b = lowlp.convert_layout %rb {lowlp.free_layout} : !rows_b -> !b
    %c = lowlp.convert_layout %acc {lowlp.free_layout} : !rows_c -> !c
    %d = lowlp.dot %a, %b, %c : !a, !b, !c
    %next = lowlp.convert_layout %d {lowlp.free_layout} : !c -> !rows_c
    scf.yield %next : !rows_c
  } {lowlp.stages = #lowlp.stages<3>}
  %row = lowlp.load_global %vbias[%c0] {lowlp.free_layout} : !lowlp.global<8xf32> -> !bias
  %halves = lowlp.splat %half {lowlp.free_layout} : f32 -> !rows_c
  %scaled = lowlp.mul %accumulators, %halves : !rows_c
  %rows = lowlp.broadcast %row : !bias -> !rows_c
  %biased = lowlp.add %scaled, %rows : !rows_c
  %y = lowlp.cast %biased : !rows_c -> !rows_y
  lowlp.store_global %y, %vy[%c0, %c0] : !rows_y, !lowlp.global<16x8xf16>
  lowlp.return
}

// -----

!rows = !lowlp.tile<16x32xf16, spatial(8, 4).local(2, 8)>
!a = !lowlp.tile<16x32xf16, local(1, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<32x16xf16, local(4, 2).column_spatial(4, 8).local(2, 1)>
!bt = !lowlp.tile<32x16xf16, column_spatial(4, 8).column_local(8, 2)>
!c = !lowlp.tile<16x16xf32, local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)>

// One load is both operands of a product with itself transposed: both are the same fragments.
// CHECK-LABEL: lowlp.kernel @with_itself
// CHECK: %[[X:.*]] = lowlp.load_global {{.*}} -> !lowlp.tile<16x32xf16, column_local(2, 4).spatial(8, 4).local(1, 2)>
// CHECK: %[[T:.*]] = lowlp.transpose %[[X]] [1, 0]
// CHECK: lowlp.dot %[[X]], %[[T]],
lowlp.kernel @with_itself(%px: !lowlp.ptr<f16>, %py: !lowlp.ptr<f16>, %accumulators: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %vx = lowlp.view_global %px shape [16, 32] : !lowlp.ptr<f16> -> !lowlp.global<16x32xf16>
  %vs = lowlp.view_global %accumulators shape [16, 16] : !lowlp.ptr<f32> -> !lowlp.global<16x16xf32>
  %x = lowlp.load_global %vx[%c0, %c0] {lowlp.free_layout} : !lowlp.global<16x32xf16> -> !rows
  %t = lowlp.transpose %x [1, 0] : !rows -> !bt
  %a = lowlp.convert_layout %x {lowlp.free_layout} : !rows -> !a
  %b = lowlp.convert_layout %t {lowlp.free_layout} : !bt -> !b
  %init = lowlp.splat %zero {lowlp.free_layout} : f32 -> !c
  %d = lowlp.dot %a, %b, %init : !a, !b, !c
  lowlp.store_global %d, %vs[%c0, %c0] : !c, !lowlp.global<16x16xf32>
  lowlp.return
}

// -----

!blocked = !lowlp.tile<16x8xf32, spatial(16, 2).local(1, 4)>
!c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!a = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>

// What a loop carries may come from a branch.
// CHECK-LABEL: lowlp.kernel @branches
// CHECK-NOT: lowlp.convert_layout
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (![[C:lowlp.tile<16x8xf32, local\(2, 1\).spatial\(8, 4\).local\(1, 2\)>]])
// CHECK: scf.if {{.*}} -> (![[C]])
// CHECK: %[[D:.*]] = lowlp.dot %{{.*}}, %{{.*}}, %[[ACC]]
// CHECK: scf.yield %[[D]] : ![[C]]
// CHECK: scf.yield %[[ACC]] : ![[C]]
lowlp.kernel @branches(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<f16>, %py: !lowlp.ptr<f32>, %n: i32)
    attributes {grid = affine_map<(m) -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %i0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %va = lowlp.view_global %pa shape [16, 16] : !lowlp.ptr<f16> -> !lowlp.global<16x16xf16>
  %vb = lowlp.view_global %pb shape [16, 8] : !lowlp.ptr<f16> -> !lowlp.global<16x8xf16>
  %vy = lowlp.view_global %py shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %a = lowlp.load_global %va[%c0, %c0] : !lowlp.global<16x16xf16> -> !a
  %b = lowlp.load_global %vb[%c0, %c0] : !lowlp.global<16x8xf16> -> !b
  %init = lowlp.splat %zero {lowlp.free_layout} : f32 -> !blocked
  %is = arith.cmpi eq, %n, %i0 : i32
  %accumulators = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %init) -> (!blocked) {
    %next = scf.if %is -> (!blocked) {
      %c = lowlp.convert_layout %acc {lowlp.free_layout} : !blocked -> !c
      %d = lowlp.dot %a, %b, %c : !a, !b, !c
      %back = lowlp.convert_layout %d {lowlp.free_layout} : !c -> !blocked
      scf.yield %back : !blocked
    } else {
      scf.yield %acc : !blocked
    }
    scf.yield %next : !blocked
  }
  lowlp.store_global %accumulators, %vy[%c0, %c0] : !blocked, !lowlp.global<16x8xf32>
  lowlp.return
}

// -----

!rows = !lowlp.tile<64x64xf32, local(8, 1).spatial(8, 16).local(1, 4)>
!sum = !lowlp.tile<64x1xf32, local(8, 1).spatial(8, 1).reduce(spatial(1, 1, 16), dims=[2])>
!named = !lowlp.tile<64x1xf32, reduce(spatial(1, 1, 2), dims=[2]).spatial(64, 1)>
!column = !lowlp.tile<64x64xf32, local(1, 8).column_spatial(16, 8).local(4, 1)>

// Where the same tile is stored along both of its dimensions, one of the two converts; and a reduction cannot give its
// result the layout that the user named.
// REMARK: [Missed] layout | Category:lowlp-infer-layouts | Function=left | Op=lowlp.store_global, Reason="converts from local(8, 1).spatial(8, 16).local(1, 4) to local(1, 8).column_spatial(16, 8).local(4, 1), as a store as held costs more"
// CHECK-LABEL: lowlp.kernel @left
// CHECK-SAME: lowlp.report = {layouts = ["conversions removed: 1, left: 1", "lowlp.store_global at {{.*}}: converts from local(8, 1).spatial(8, 16).local(1, 4) to local(1, 8).column_spatial(16, 8).local(4, 1), as a store as held costs more"]
// CHECK: %[[X:.*]] = lowlp.load_global
// CHECK: %[[T:.*]] = lowlp.convert_layout %[[X]] : {{.*}} -> !lowlp.tile<64x64xf32, local(1, 8).column_spatial(16, 8).local(4, 1)>
// CHECK: %[[S:.*]] = lowlp.reduce add %[[X]] dim 1
// CHECK: %[[N:.*]] = lowlp.convert_layout %[[S]] : {{.*}} -> !lowlp.tile<64x1xf32, reduce(spatial(1, 1, 2), dims=[2]).spatial(64, 1)>
// CHECK: lowlp.store_global %[[N]],
// CHECK: lowlp.store_global %[[T]],
lowlp.kernel @left(%px: !lowlp.ptr<f32>, %pt: !lowlp.ptr<f32>, %ps: !lowlp.ptr<f32>, %n: i32)
    attributes {grid = affine_map<(m) -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %vx = lowlp.view_global %px shape [64, 4096] : !lowlp.ptr<f32> -> !lowlp.global<64x4096xf32>
  %vt = lowlp.view_global %pt shape [64, 4096] strides [1, 64] : !lowlp.ptr<f32> -> !lowlp.global<64x4096xf32>
  %vs = lowlp.view_global %ps shape [64, 1] : !lowlp.ptr<f32> -> !lowlp.global<64x1xf32>
  %x = lowlp.load_global %vx[%c0, %c0] {lowlp.free_layout} : !lowlp.global<64x4096xf32> -> !rows
  %s = lowlp.reduce add %x dim 1 : !rows -> !sum
  %t = lowlp.convert_layout %s : !sum -> !named
  lowlp.store_global %t, %vs[%c0, %c0] : !named, !lowlp.global<64x1xf32>
  %y = lowlp.convert_layout %x {lowlp.free_layout} : !rows -> !column
  lowlp.store_global %y, %vt[%c0, %c0] : !column, !lowlp.global<64x4096xf32>
  lowlp.return
}

// -----

!rows = !lowlp.tile<16x32xf16, spatial(8, 4).local(2, 8)>
!named = !lowlp.tile<16x32xf16, column_spatial(8, 4).column_local(2, 8)>

// A kernel without marks is as its user wrote it.
// CHECK-LABEL: lowlp.kernel @named
// CHECK-NOT: lowlp.layouts
// CHECK: lowlp.load_global {{.*}} -> !lowlp.tile<16x32xf16, spatial(8, 4).local(2, 8)>
// CHECK: lowlp.convert_layout
lowlp.kernel @named(%px: !lowlp.ptr<f16>, %py: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %vx = lowlp.view_global %px shape [16, 32] : !lowlp.ptr<f16> -> !lowlp.global<16x32xf16>
  %x = lowlp.load_global %vx[%c0, %c0] : !lowlp.global<16x32xf16> -> !rows
  %y = lowlp.convert_layout %x : !rows -> !named
  lowlp.store_global %y, %vx[%c0, %c0] : !named, !lowlp.global<16x32xf16>
  lowlp.return
}

// -----

!rows = !lowlp.tile<16x32xf32, spatial(8, 4).local(2, 8)>
!named = !lowlp.tile<16x32xf32, column_spatial(8, 4).column_local(2, 8)>

// What a user named stays, and free tiles follow. A splat that is needed in two layouts is made twice.
// CHECK-LABEL: lowlp.kernel @partly
// CHECK-NOT: lowlp.convert_layout
// CHECK: %[[X:.*]] = lowlp.load_global {{.*}} -> ![[NAMED:lowlp.tile<16x32xf32, column_spatial\(8, 4\).column_local\(2, 8\)>]]
// CHECK: %[[ONES:.*]] = lowlp.splat {{.*}} -> !lowlp.tile<16x32xf32, spatial(8, 4).local(2, 8)>
// CHECK: %[[AGAIN:.*]] = lowlp.splat {{.*}} -> ![[NAMED]]
// CHECK: lowlp.add %[[X]], %[[AGAIN]] : ![[NAMED]]
// CHECK: "test.use"(%[[ONES]])
lowlp.kernel @partly(%px: !lowlp.ptr<f32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %vx = lowlp.view_global %px shape [16, 32] : !lowlp.ptr<f32> -> !lowlp.global<16x32xf32>
  %x = lowlp.load_global %vx[%c0, %c0] : !lowlp.global<16x32xf32> -> !named
  %ones = lowlp.splat %one {lowlp.free_layout} : f32 -> !rows
  %ones2 = lowlp.convert_layout %ones : !rows -> !named
  %y = lowlp.add %x, %ones2 : !named
  "test.use"(%ones) : (!rows) -> ()
  lowlp.store_global %y, %vx[%c0, %c0] : !named, !lowlp.global<16x32xf32>
  lowlp.return
}

// -----

!rows = !lowlp.tile<32x32xf16, local(4, 1).spatial(8, 4).local(1, 8)>
!a = !lowlp.tile<32x32xf16, local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<32x32xf16, local(4, 4).column_spatial(4, 8).local(2, 1)>
!c = !lowlp.tile<32x32xf32, local(2, 4).local(2, 1).spatial(8, 4).local(1, 2)>

// Two uses need one tile differently: the first decides, and the second has a conversion.
// CHECK-LABEL: lowlp.kernel @conflict
// CHECK-SAME: lowlp.report = {layouts = ["conversions removed: 2, left: 1", "lowlp.dot at {{[^"]*}}, as other uses hold the tile as local(2, 4).local(2, 1).spatial(8, 4).local(1, 2)"]
// CHECK: %[[A:.*]] = lowlp.load_global {{.*}} -> !lowlp.tile<32x32xf16, local(2, 4).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK: %[[B:.*]] = lowlp.convert_layout %[[A]] : {{.*}} -> !lowlp.tile<32x32xf16, local(4, 4).column_spatial(4, 8).local(2, 1)>
// CHECK: lowlp.dot %[[A]], %[[B]],
lowlp.kernel @conflict(%px: !lowlp.ptr<f16>, %py: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %vx = lowlp.view_global %px shape [32, 4096] : !lowlp.ptr<f16> -> !lowlp.global<32x4096xf16>
  %vy = lowlp.view_global %py shape [32, 32] : !lowlp.ptr<f32> -> !lowlp.global<32x32xf32>
  %x = lowlp.load_global %vx[%c0, %c0] {lowlp.free_layout} : !lowlp.global<32x4096xf16> -> !rows
  %a = lowlp.convert_layout %x {lowlp.free_layout} : !rows -> !a
  %b = lowlp.convert_layout %x {lowlp.free_layout} : !rows -> !b
  %init = lowlp.splat %zero {lowlp.free_layout} : f32 -> !c
  %d = lowlp.dot %a, %b, %init : !a, !b, !c
  lowlp.store_global %d, %vy[%c0, %c0] : !c, !lowlp.global<32x32xf32>
  lowlp.return
}

// -----

!codes = !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
!other = !lowlp.tile<16x64xsi4, spatial(16, 2).local(1, 32)>
!rows = !lowlp.tile<16x64xf16, spatial(16, 2).local(1, 32)>

// Packed weights come in whole units: what needs them otherwise converts the codes, not what they are cast to.
// CHECK-LABEL: lowlp.kernel @packed
// CHECK-SAME: "lowlp.cast at {{.*}}: converts {{.*}}, as lowlp.load_packed cannot hold it so"
// CHECK: %[[Q:.*]] = lowlp.load_packed {{.*}} -> !lowlp.tile<16x64xsi4, column_local(2, 8).spatial(8, 4).local(1, 2)>
// CHECK: %[[R:.*]] = lowlp.convert_layout %[[Q]] : {{.*}} -> !lowlp.tile<16x64xsi4, spatial(16, 2).local(1, 32)>
// CHECK: %[[W:.*]] = lowlp.cast %[[R]]
// CHECK: "test.use"(%[[W]])
lowlp.kernel @packed(%pw: !lowlp.ptr<ui32>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_packed %pw shape [16, 64] : !lowlp.ptr<ui32> -> !lowlp.packed<16x64, #lowlp.codec<int4>, f16>
  %q = lowlp.load_packed %v[%c0, %c0] {lowlp.free_layout} : !lowlp.packed<16x64, #lowlp.codec<int4>, f16> -> !codes
  %r = lowlp.convert_layout %q {lowlp.free_layout} : !codes -> !other
  %w = lowlp.cast %r : !other -> !rows
  "test.use"(%w) : (!rows) -> ()
  lowlp.return
}

// -----

!rows = !lowlp.tile<64x64xsi8, local(2, 1).spatial(32, 4).local(1, 16)>
!halves = !lowlp.tile<64x64xf16, local(2, 1).spatial(32, 4).local(1, 16)>
!a = !lowlp.tile<64x64xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>

// Outside of stages, where all warps need the same fragments, a load of them costs more than one along memory and a
// conversion; which is in front of the cast, where elements are narrow.
// CHECK-LABEL: lowlp.kernel @without_stages
// CHECK-SAME: lowlp.report = {layouts = ["conversions removed: 1, left: 1", "lowlp.cast at {{[^"]*}}, as a load as needed costs 1024, one along memory 64 and the conversion {{[0-9]+}}"]
// CHECK: %[[X:.*]] = lowlp.load_global {{.*}} -> !lowlp.tile<64x64xsi8, local(2, 1).spatial(32, 4).local(1, 16)>
// CHECK: %[[C:.*]] = lowlp.convert_layout %[[X]]
// CHECK: %[[A:.*]] = lowlp.cast %[[C]] : !lowlp.tile<64x64xsi8, {{.*}}> -> !lowlp.tile<64x64xf16, reduce(spatial(1, 1, 4), dims=[2]).local(4, 8).local(2, 1).spatial(8, 4).local(1, 2)>
// CHECK: "test.use"(%[[A]])
lowlp.kernel @without_stages(%px: !lowlp.ptr<si8>) attributes {grid = affine_map<() -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %vx = lowlp.view_global %px shape [64, 4096] : !lowlp.ptr<si8> -> !lowlp.global<64x4096xsi8>
  %x = lowlp.load_global %vx[%c0, %c0] {lowlp.free_layout} : !lowlp.global<64x4096xsi8> -> !rows
  %h = lowlp.cast %x : !rows -> !halves
  %a = lowlp.convert_layout %h {lowlp.free_layout} : !halves -> !a
  "test.use"(%a) : (!a) -> ()
  lowlp.return
}

// -----

!blocked = !lowlp.tile<16x8xf32, spatial(16, 2).local(1, 4)>
!c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!a = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>

// What a product gives is carried as it is, though the loop itself has no need of it.
// CHECK-LABEL: lowlp.kernel @offered
// CHECK-NOT: lowlp.convert_layout
// CHECK: scf.for {{.*}} iter_args(%[[LAST:.*]] = %{{.*}}) -> (!lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>)
lowlp.kernel @offered(%pa: !lowlp.ptr<f16>, %pb: !lowlp.ptr<f16>, %py: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %va = lowlp.view_global %pa shape [128, 16] : !lowlp.ptr<f16> -> !lowlp.global<128x16xf16>
  %vb = lowlp.view_global %pb shape [16, 8] : !lowlp.ptr<f16> -> !lowlp.global<16x8xf16>
  %vy = lowlp.view_global %py shape [16, 8] : !lowlp.ptr<f32> -> !lowlp.global<16x8xf32>
  %b = lowlp.load_global %vb[%c0, %c0] : !lowlp.global<16x8xf16> -> !b
  %none = lowlp.splat %zero : f32 -> !c
  %init = lowlp.splat %zero {lowlp.free_layout} : f32 -> !blocked
  %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%before = %init) -> (!blocked) {
    %a = lowlp.load_global %va[%i, %c0] : !lowlp.global<128x16xf16> -> !a
    %d = lowlp.dot %a, %b, %none : !a, !b, !c
    %next = lowlp.convert_layout %d {lowlp.free_layout} : !c -> !blocked
    scf.yield %next : !blocked
  }
  lowlp.store_global %last, %vy[%c0, %c0] : !blocked, !lowlp.global<16x8xf32>
  lowlp.return
}

// -----

!along = !lowlp.tile<16x1024xf16, spatial(1, 128).local(16, 8)>
!maxima = !lowlp.tile<16x1xf16, reduce(spatial(1, 1, 128), dims=[2]).local(16, 1)>

// Four warps along a row would exchange their maxima through shared memory in each iteration; so each takes four rows, and the
// maximum, what is subtracted and the store follow.
// CHECK-LABEL: lowlp.kernel @rows
// CHECK: %[[T:.*]] = lowlp.load_global {{.*}} -> !lowlp.tile<16x1024xf16, spatial(4, 1).local(4, 4).spatial(1, 32).local(1, 8)>
// CHECK-NEXT: %[[MAX:.*]] = lowlp.reduce max %[[T]]
// CHECK-NEXT: %[[ROWS:.*]] = lowlp.broadcast %[[MAX]]
// CHECK-NEXT: %[[Y:.*]] = lowlp.sub %[[T]], %[[ROWS]]
// CHECK-NEXT: lowlp.store_global %[[Y]]
lowlp.kernel @rows(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %y: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (1)>, num_threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %x shape [%n, 1024] : !lowlp.ptr<f16> -> !lowlp.global<?x1024xf16>
  %w = lowlp.view_global %y shape [%n, 1024] : !lowlp.ptr<f16> -> !lowlp.global<?x1024xf16>
  scf.for %i = %c0 to %n step %c16 {
    %t = lowlp.load_global %v[%i, %c0] {lowlp.free_layout} : !lowlp.global<?x1024xf16> -> !along
    %max = lowlp.reduce max %t dim 1 : !along -> !maxima
    %b = lowlp.broadcast %max : !maxima -> !along
    %d = lowlp.sub %t, %b : !along
    lowlp.store_global %d, %w[%i, %c0] : !along, !lowlp.global<?x1024xf16>
  }
  lowlp.return
}
