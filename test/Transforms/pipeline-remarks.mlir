// RUN: lowlp-opt %s --split-input-file --verify-diagnostics "--remarks-filter=lowlp-(choose-rings|pipeline)" --remark-format=emitRemark --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings,lowlp-pipeline))"

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

// Loads that cannot be made ahead, each for a reason of its own; one that can.
lowlp.kernel @loads(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %z: !lowlp.ptr<ui4>, %m: i32)
    attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %written = lowlp.view_global %y shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %nibbles = lowlp.view_global %z shape [%n, 64] : !lowlp.ptr<ui4> -> !lowlp.global<?x64xui4>
  %own = lowlp.alloc_global shape affine_map<(m) -> (m, 64)> : !lowlp.ptr<f16>
  %mine = lowlp.view_global %own shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (index) {
    // expected-remark @below {{[Passed] stages | Category:lowlp-pipeline | Function=loads | Op=lowlp.load_global, Remark="3 stages of 128 bytes by tensor copies"}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    // expected-remark @below {{[Missed] stages | Category:lowlp-choose-rings | Function=loads | Op=lowlp.load_global, Reason="the kernel may write to y, which it reads"}}
    %b = lowlp.load_global %written[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    // expected-remark @below {{its offsets do not follow from the induction variable and what is known before the loop}}
    %c = lowlp.load_global %v[%at, %c0] : !lowlp.global<?x64xf16> -> !t
    // expected-remark @below {{its elements are no whole bytes}}
    %d = lowlp.load_global %nibbles[%i, %c0] : !lowlp.global<?x64xui4> -> !lowlp.tile<64xui4, spatial(32).local(2)>
    // expected-remark @below {{it reads memory that is no parameter of the kernel}}
    %e = lowlp.load_global %mine[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    %inner = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
    // expected-remark @below {{its view is made in the loop}}
    %f = lowlp.load_global %inner[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    scf.if %true {
      // expected-remark @below {{it stands in a scf.if of the loop}}
      %g = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    }
    lowlp.store_global %a, %written[%i, %c0] : !t, !lowlp.global<?x64xf16>
    %next = arith.addi %at, %i : index
    scf.yield %next : index
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

// A loop that gets no stages at all says so, as stages were asked for.
lowlp.kernel @none(%y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %y shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // expected-remark @below {{[Missed] stages | Category:lowlp-choose-rings | Function=none | Op=scf.for, Reason="no load of its body can be made ahead of its iteration"}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{the kernel may write to y, which it reads}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.store_global %a, %v[%i, %c0] : !t, !lowlp.global<?x64xf16>
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

// A producer begins tensor copies only.
lowlp.kernel @unaligned(%p: !lowlp.ptr<f16> {lowlp.name = "p"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // expected-remark @+2 {{[Missed] tensor copies | Category:lowlp-choose-rings | Function=unaligned | Op=scf.for, Reason="p promises no alignment of 16 bytes"}}
  // expected-remark @below {{[Missed] producer warp | Category:lowlp-choose-rings | Function=unaligned | Op=scf.for, Reason="it begins tensor copies, and there are none"}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{by asynchronous copies: p promises no alignment of 16 bytes}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<3, producer = true>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

// Two loops: one producer. Where the block may end, or copies need what is loaded, there is none.
lowlp.kernel @two(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{2 stages of 128 bytes by tensor copies of a producer warp}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  // expected-remark @below {{[Missed] producer warp | Category:lowlp-choose-rings | Function=two | Op=scf.for, Reason="the kernel has a producer warp already"}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{2 stages of 128 bytes by tensor copies}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @ends(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %empty = arith.cmpi eq, %n, %c0 : index
  scf.if %empty {
    lowlp.exit
  }
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // expected-remark @below {{lowlp.exit may end the block before the loop}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{by tensor copies}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @waits(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  lowlp.wait_for_dependencies
  %b = lowlp.load_global %v[%c0, %c0] : !lowlp.global<?x64xf16> -> !t
  lowlp.print_tile "t", %b : !t
  // expected-remark @below {{more than arithmetic and reads stands between the wait for the launch before and the loop}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{by tensor copies}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @loaded(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<si32>, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %ends = lowlp.view_global %q shape [1] : !lowlp.ptr<si32> -> !lowlp.global<1xsi32>
  %last = lowlp.load_scalar %ends[%c0] : !lowlp.global<1xsi32> -> index
  // expected-remark @below {{what its copies need is not computed by arithmetic alone}}
  scf.for %i = %c0 to %last step %c1 {
    // expected-remark @below {{by tensor copies}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>
!word = !lowlp.tile<32xsi32, spatial(32)>
!table = !lowlp.shared<32xsi32, local(32)>

// Shared memory that the loop writes to is not what it was before.
lowlp.kernel @written(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<si32>, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  %words = lowlp.view_global %q shape [32] : !lowlp.ptr<si32> -> !lowlp.global<32xsi32>
  %loaded = lowlp.load_global %words[%c0] : !lowlp.global<32xsi32> -> !word
  %table = lowlp.alloc_shared : !table
  lowlp.store_shared %loaded, %table[%c0] : !word, !table
  lowlp.synchronize
  %last = lowlp.load_scalar %table[%c0] : !table -> index
  // expected-remark @below {{what its copies need is not computed by arithmetic alone}}
  scf.for %i = %c0 to %last step %c1 {
    // expected-remark @below {{by tensor copies}}
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf16> -> !t
    lowlp.print_tile "t", %a : !t
    lowlp.store_shared %loaded, %table[%c0] : !word, !table
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}
