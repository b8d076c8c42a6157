// ptxas 13.0 takes `st.b8` of a register that a float instruction wrote for a conversion of the float, with saturation. So
// an integer conversion stands in front of every store of a byte.
//
// RUN: lowlp-opt %s --lowlp-to-ptx="arch=sm_90a" | FileCheck %s

// CHECK: add.rn.f32 \09[[SUM:%r[0-9]+]],
// CHECK: cvt.u16.u32 [[BYTE:%rs[0-9]+]],
// CHECK: st.global.b8
// CHECK-SAME: [[BYTE]]
lowlp.kernel @quantize(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<si8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<si8> -> !lowlp.global<32xsi8>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf32> -> !lowlp.tile<32xf32, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32xsi8, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xsi8, spatial(32)>, !lowlp.global<32xsi8>
  lowlp.return
}
