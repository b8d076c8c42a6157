// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-to-thread

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @early_read(%x: !lowlp.ptr<f16>, %w: !lowlp.ptr<f16> {lowlp.constant}, %y: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %xv = lowlp.view_global %x shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %wv = lowlp.view_global %w shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %yv = lowlp.view_global %y shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %b = lowlp.load_global %wv[%c0] : !lowlp.global<64xf16> -> !row
  // expected-error @below {{'lowlp.load_global' op stands before lowlp.wait_for_dependencies, and touches memory that carries no lowlp.constant}}
  %a = lowlp.load_global %xv[%c0] : !lowlp.global<64xf16> -> !row
  lowlp.wait_for_dependencies
  %c = lowlp.add %a, %b : !row
  lowlp.store_global %c, %yv[%c0] : !row, !lowlp.global<64xf16>
  lowlp.return
}

// -----

// What the launch before reads must not be written early either, nor what blocks share.
lowlp.kernel @early_release() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %p = lowlp.alloc_global shape affine_map<() -> (1)> zeroed : !lowlp.ptr<si32>
  %v = lowlp.view_global %p shape [1] : !lowlp.ptr<si32> -> !lowlp.global<1xsi32>
  // expected-error @below {{'lowlp.semaphore_release' op stands before lowlp.wait_for_dependencies}}
  lowlp.semaphore_release %v[%c0], %c0 : !lowlp.global<1xsi32>
  lowlp.wait_for_dependencies
  lowlp.return
}

// -----

// A producer waits by itself, and the others too.
!row = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @others_do_not_wait(%y: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %yv = lowlp.view_global %y shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  lowlp.producer_warp {
    lowlp.wait_for_dependencies
  }
  %one = arith.constant 1.0 : f16
  %c = lowlp.splat %one : f16 -> !row
  // expected-error @below {{'lowlp.store_global' op stands before lowlp.wait_for_dependencies}}
  lowlp.store_global %c, %yv[%c0] : !row, !lowlp.global<64xf16>
  lowlp.return
}

// -----

lowlp.kernel @in_a_branch(%n: i32) attributes {grid = affine_map<(n) -> (n)>, num_threads = 32 : i64} {
  %c9 = arith.constant 9 : i32
  %few = arith.cmpi slt, %n, %c9 : i32
  // expected-error @below {{'scf.if' op must not hold lowlp.wait_for_dependencies, which stands in the body of the kernel itself}}
  scf.if %few {
    lowlp.wait_for_dependencies
  }
  lowlp.return
}

// -----

!row = !lowlp.tile<64xf16, spatial(32).local(2)>

// expected-error @below {{'lowlp.kernel' op may write to parameter 0, which carries lowlp.constant}}
lowlp.kernel @writes_a_constant(%y: !lowlp.ptr<f16> {lowlp.constant}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %yv = lowlp.view_global %y shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %one = arith.constant 1.0 : f16
  %c = lowlp.splat %one : f16 -> !row
  lowlp.store_global %c, %yv[%c0] : !row, !lowlp.global<64xf16>
  lowlp.return
}
