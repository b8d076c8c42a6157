// RUN: lowlp-opt %s --verify-roundtrip --mlir-print-op-generic | FileCheck %s

// Every element type, in the order of bits. `func.func` declarations keep a list of types as it is.

// CHECK: (!lowlp.ptr<si1>, !lowlp.ptr<si2>, !lowlp.ptr<si3>, !lowlp.ptr<si4>, !lowlp.ptr<si5>, !lowlp.ptr<si6>, !lowlp.ptr<si7>, !lowlp.ptr<si8>) -> ()
func.func private @signed(!lowlp.ptr<si1>, !lowlp.ptr<si2>, !lowlp.ptr<si3>, !lowlp.ptr<si4>,
                          !lowlp.ptr<si5>, !lowlp.ptr<si6>, !lowlp.ptr<si7>, !lowlp.ptr<si8>)

// CHECK: (!lowlp.ptr<ui1>, !lowlp.ptr<ui2>, !lowlp.ptr<ui3>, !lowlp.ptr<ui4>, !lowlp.ptr<ui5>, !lowlp.ptr<ui6>, !lowlp.ptr<ui7>, !lowlp.ptr<ui8>) -> ()
func.func private @unsigned(!lowlp.ptr<ui1>, !lowlp.ptr<ui2>, !lowlp.ptr<ui3>, !lowlp.ptr<ui4>,
                            !lowlp.ptr<ui5>, !lowlp.ptr<ui6>, !lowlp.ptr<ui7>, !lowlp.ptr<ui8>)

// CHECK: (!lowlp.ptr<!lowlp.float<e1m1>>, !lowlp.ptr<!lowlp.float<e2m0>>, !lowlp.ptr<!lowlp.float<e1m2>>, !lowlp.ptr<f4E2M1FN>, !lowlp.ptr<!lowlp.float<e3m0>>) -> ()
func.func private @floats_to_4_bits(!lowlp.ptr<!lowlp.float<e1m1>>, !lowlp.ptr<!lowlp.float<e2m0>>,
    !lowlp.ptr<!lowlp.float<e1m2>>, !lowlp.ptr<f4E2M1FN>, !lowlp.ptr<!lowlp.float<e3m0>>)

// CHECK: (!lowlp.ptr<!lowlp.float<e1m3>>, !lowlp.ptr<!lowlp.float<e2m2>>, !lowlp.ptr<!lowlp.float<e3m1>>, !lowlp.ptr<!lowlp.float<e4m0>>) -> ()
func.func private @floats_of_5_bits(!lowlp.ptr<!lowlp.float<e1m3>>, !lowlp.ptr<!lowlp.float<e2m2>>,
    !lowlp.ptr<!lowlp.float<e3m1>>, !lowlp.ptr<!lowlp.float<e4m0>>)

// CHECK: (!lowlp.ptr<!lowlp.float<e1m4>>, !lowlp.ptr<f6E2M3FN>, !lowlp.ptr<f6E3M2FN>, !lowlp.ptr<!lowlp.float<e4m1>>, !lowlp.ptr<!lowlp.float<e5m0>>) -> ()
func.func private @floats_of_6_bits(!lowlp.ptr<!lowlp.float<e1m4>>, !lowlp.ptr<f6E2M3FN>, !lowlp.ptr<f6E3M2FN>,
    !lowlp.ptr<!lowlp.float<e4m1>>, !lowlp.ptr<!lowlp.float<e5m0>>)

// CHECK: (!lowlp.ptr<!lowlp.float<e1m5>>, !lowlp.ptr<!lowlp.float<e2m4>>, !lowlp.ptr<!lowlp.float<e3m3>>, !lowlp.ptr<!lowlp.float<e4m2>>, !lowlp.ptr<!lowlp.float<e5m1>>, !lowlp.ptr<!lowlp.float<e6m0>>) -> ()
func.func private @floats_of_7_bits(!lowlp.ptr<!lowlp.float<e1m5>>, !lowlp.ptr<!lowlp.float<e2m4>>,
    !lowlp.ptr<!lowlp.float<e3m3>>, !lowlp.ptr<!lowlp.float<e4m2>>, !lowlp.ptr<!lowlp.float<e5m1>>,
    !lowlp.ptr<!lowlp.float<e6m0>>)

// CHECK: (!lowlp.ptr<!lowlp.float<e1m6>>, !lowlp.ptr<!lowlp.float<e2m5>>, !lowlp.ptr<f8E3M4>, !lowlp.ptr<f8E4M3FN>, !lowlp.ptr<f8E5M2>, !lowlp.ptr<!lowlp.float<e6m1>>, !lowlp.ptr<!lowlp.float<e7m0>>) -> ()
func.func private @floats_of_8_bits(!lowlp.ptr<!lowlp.float<e1m6>>, !lowlp.ptr<!lowlp.float<e2m5>>,
    !lowlp.ptr<f8E3M4>, !lowlp.ptr<f8E4M3FN>, !lowlp.ptr<f8E5M2>, !lowlp.ptr<!lowlp.float<e6m1>>,
    !lowlp.ptr<!lowlp.float<e7m0>>)

// CHECK: (!lowlp.ptr<f16>, !lowlp.ptr<bf16>, !lowlp.ptr<f32>) -> ()
func.func private @wide(!lowlp.ptr<f16>, !lowlp.ptr<bf16>, !lowlp.ptr<f32>)

// CHECK: (!lowlp.global<?xsi6>, !lowlp.global<?x4096xf16>, !lowlp.global<2x3x?x!lowlp.float<e2m2>>) -> ()
func.func private @global(!lowlp.global<?xsi6>, !lowlp.global<?x4096xf16>, !lowlp.global<2x3x?x!lowlp.float<e2m2>>)

// A row-major layout is what a shared tile has when it names none.
// CHECK: (!lowlp.shared<16x32xf16>, !lowlp.shared<16x32xf16>, !lowlp.shared<16x32xui3, column_local(16, 32)>) -> ()
func.func private @shared(!lowlp.shared<16x32xf16>, !lowlp.shared<16x32xf16, local(16, 32)>,
                          !lowlp.shared<16x32xui3, column_local(16, 32)>)

!alias = !lowlp.tile<96xui8, local(3).spatial(32)>
// CHECK: (!lowlp.tile<96xui8, local(3).spatial(32)>, !lowlp.tile<2x4x!lowlp.float<e3m0>, spatial(2, 4)>, tuple<!lowlp.tile<1xf16, local(1)>, !lowlp.ptr<f32>>) -> ()
func.func private @tile(!alias, !lowlp.tile<2x4x!lowlp.float<e3m0>, spatial(2, 4)>,
                        tuple<!lowlp.tile<1xf16, local(1)>, !lowlp.ptr<f32>>)
