// Functions need no library: the assembler takes the PTX of each architecture as it is.
// REQUIRES: ptxas
// RUN: lowlp-opt %s --lowlp-to-ptx=arch=sm_80 | sed -n 's/.*assembly = "\(.*\)">.*/\1/p' | sed 's/\\0A/\n/g; s/\\09/\t/g; s/\\22/"/g' > %t.80.ptx
// RUN: %ptxas -arch=sm_80 %t.80.ptx -o %t.80.cubin
// RUN: lowlp-opt %s --lowlp-to-ptx=arch=sm_90a | sed -n 's/.*assembly = "\(.*\)">.*/\1/p' | sed 's/\\0A/\n/g; s/\\09/\t/g; s/\\22/"/g' > %t.90.ptx
// RUN: %ptxas -arch=sm_90a %t.90.ptx -o %t.90.cubin
// RUN: FileCheck %s < %t.90.ptx

// CHECK-NOT: call
// CHECK: ex2.approx.ftz.f32
// CHECK: lg2.approx.f32
// CHECK: sqrt.rn.f32
// CHECK: rsqrt.approx.f32
// CHECK-NOT: call
!tile = !lowlp.tile<32xf32, spatial(32)>
!half = !lowlp.tile<96xbf16, local(3).spatial(32)>
!bits = !lowlp.tile<96xui1, local(3).spatial(32)>
!sum = !lowlp.tile<1xf32, reduce(spatial(32), dims=[0])>
lowlp.kernel @functions(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %a = lowlp.load_global %v[%c0] : !lowlp.global<32xf32> -> !tile
  %exp2 = lowlp.exp2 %a : !tile
  %log2 = lowlp.log2 %exp2 : !tile
  %sqrt = lowlp.sqrt %log2 : !tile
  %rsqrt = lowlp.rsqrt %sqrt : !tile
  %exp = lowlp.exp %rsqrt : !tile
  %tanh = lowlp.tanh %exp : !tile
  %abs = lowlp.abs %tanh : !tile
  %index = lowlp.iota dim 0 : !tile
  %min = lowlp.minimum %abs, %index : !tile
  %total = lowlp.reduce add %min dim 0 : !tile -> !sum
  %all = lowlp.broadcast %total : !sum -> !tile
  lowlp.store_global %all, %v[%c0] : !tile, !lowlp.global<32xf32>
  %w = lowlp.view_global %q shape [96] : !lowlp.ptr<bf16> -> !lowlp.global<96xbf16>
  %b = lowlp.load_global %w[%c0] : !lowlp.global<96xbf16> -> !half
  %power = lowlp.exp2 %b : !half
  %max = lowlp.maximum %power, %b : !half
  %less = lowlp.compare lt %max, %power : !half -> !bits
  %chosen = lowlp.select %less, %max, %power : !bits, !half
  lowlp.store_global %chosen, %w[%c0] : !half, !lowlp.global<96xbf16>
  lowlp.return
}
