// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(lowlp.kernel(lowlp-choose-rings))"

lowlp.kernel @nested() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    scf.for %j = %c0 to %c1 step %c1 {
      // expected-error @below {{'scf.for' op has stages, and must stand in the body of the kernel itself or of a loop there, but is in a scf.for}}
      scf.for %l = %c0 to %c1 step %c1 {
      } {lowlp.stages = #lowlp.stages<3>}
    }
  }
  lowlp.return
}

// -----

lowlp.kernel @end() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op has stages, and must not end the block by lowlp.exit: copies are in flight}}
  scf.for %i = %c0 to %c1 step %c1 {
    %last = arith.cmpi eq, %i, %c1 : index
    scf.if %last {
      lowlp.exit
    }
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}
