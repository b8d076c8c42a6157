// RUN: lowlp-opt %s --canonicalize --lowlp-convert-to-thread | FileCheck %s

// Canonicalization turns an scf.if that only chooses into an arith.select, of tiles too.
!t = !lowlp.tile<96xsi3, local(3).spatial(32)>
// CHECK-LABEL: gpu.func @choose
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<1xi32>
lowlp.kernel @choose(%p: !lowlp.ptr<si3>) attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %b = lowlp.block_indices : index
  %v = lowlp.view_global %p shape [2, 96] : !lowlp.ptr<si3> -> !lowlp.global<2x96xsi3>
  %x = lowlp.load_global %v[%b, %c0] : !lowlp.global<2x96xsi3> -> !t
  %y = lowlp.load_global %v[%c0, %c0] : !lowlp.global<2x96xsi3> -> !t
  %is_first = arith.cmpi eq, %b, %c0 : index
  %z = scf.if %is_first -> !t { scf.yield %x : !t } else { scf.yield %y : !t }
  lowlp.store_global %z, %v[%b, %c0] : !t, !lowlp.global<2x96xsi3>
  lowlp.return
}
