// RUN: lowlp-opt %s --verify-diagnostics --pass-pipeline="builtin.module(lowlp.kernel(lowlp-pipeline{arch=sm_80}))"

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  // expected-error @below {{'scf.for' op has rings that tensor copies fill, which the architecture does not have}}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<first_thread fills [!lowlp.shared<3x64xf16>]>}
  lowlp.return
}
