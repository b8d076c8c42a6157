// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// Every cast decodes to f32 and rounds from it. One element a thread, so that each conversion stands there once.

// The sign of 6 bits is spread over 32. Of 16 bits and fewer that become f16, f32 gets its bits by a sum: with a conversion,
// canonicalization would drop f32 between, and that to f16 takes a slow pipe.
// CHECK-LABEL: gpu.func @si6_to_f16
// CHECK: %[[HIGH:.*]] = arith.shli %{{.*}}, %c26_i32 : i32
// CHECK: %[[WIDE:.*]] = arith.shrsi %[[HIGH]], %c26_i32 : i32
// CHECK: %[[BITS:.*]] = arith.addi %[[WIDE]], %c1262485504_i32
// CHECK: %[[SUM:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK: %[[EXACT:.*]] = arith.subf %[[SUM]], %{{.*}} : f32
// CHECK: arith.truncf %[[EXACT]] : f32 to f16
lowlp.kernel @si6_to_f16(%p: !lowlp.ptr<si6>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si6> -> !lowlp.global<32xsi6>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xsi6> -> !lowlp.tile<32xsi6, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xsi6, spatial(32)> -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf16, spatial(32)>, !lowlp.global<32xf16>
  lowlp.return
}

// One bit is a sign alone: 0 and -1.
// CHECK-LABEL: gpu.func @si1_to_f32
// CHECK: %[[HIGH:.*]] = arith.shli %{{.*}}, %c31_i32 : i32
// CHECK: arith.shrsi %[[HIGH]], %c31_i32 : i32
// CHECK-NOT: arith.truncf
// CHECK: simt.store
lowlp.kernel @si1_to_f32(%p: !lowlp.ptr<si1>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<si1> -> !lowlp.global<32xsi1>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xsi1> -> !lowlp.tile<32xsi1, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xsi1, spatial(32)> -> !lowlp.tile<32xf32, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  lowlp.return
}

// No sign: no shifts.
// CHECK-LABEL: gpu.func @ui3_to_bf16
// CHECK: %[[CODE:.*]] = arith.andi %{{.*}}, %c7_i32 : i32
// CHECK: arith.addi %[[CODE]], %c1262485504_i32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
lowlp.kernel @ui3_to_bf16(%p: !lowlp.ptr<ui3>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<ui3> -> !lowlp.global<32xui3>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<bf16> -> !lowlp.global<32xbf16>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xui3> -> !lowlp.tile<32xui3, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xui3, spatial(32)> -> !lowlp.tile<32xbf16, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xbf16, spatial(32)>, !lowlp.global<32xbf16>
  lowlp.return
}

// To integers: NaN is 0, the rest is clamped; adding 1.5 * 2^23 rounds to nearest even, and the low bits are the code.
// CHECK-LABEL: gpu.func @f16_to_si6
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant 0x4B400000 : f32
// CHECK-DAG: %[[MIN:.*]] = arith.constant -3.200000e+01 : f32
// CHECK-DAG: %[[MAX:.*]] = arith.constant 3.100000e+01 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[F:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[F]], %[[F]] : f32
// CHECK: %[[N:.*]] = arith.select %[[NAN]], %[[ZERO]], %[[F]] : f32
// CHECK: %[[ABOVE:.*]] = arith.cmpf ogt, %[[N]], %[[MAX]] : f32
// CHECK: %[[A:.*]] = arith.select %[[ABOVE]], %[[MAX]], %[[N]] : f32
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[A]], %[[MIN]] : f32
// CHECK: %[[B:.*]] = arith.select %[[BELOW]], %[[MIN]], %[[A]] : f32
// CHECK: %[[SUM:.*]] = arith.addf %[[B]], %[[MAGIC]] : f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SUM]] : f32 to i32
// CHECK: arith.andi %[[BITS]], %c63_i32 : i32
lowlp.kernel @f16_to_si6(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<si6>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<si6> -> !lowlp.global<32xsi6>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf16, spatial(32)> -> !lowlp.tile<32xsi6, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xsi6, spatial(32)>, !lowlp.global<32xsi6>
  lowlp.return
}

// Bounds of an unsigned integer.
// CHECK-LABEL: gpu.func @bf16_to_ui4
// CHECK-DAG: %[[MAX:.*]] = arith.constant 1.500000e+01 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.cmpf ogt, %{{.*}}, %[[MAX]] : f32
// CHECK: arith.cmpf olt, %{{.*}}, %[[ZERO]] : f32
// CHECK: arith.andi %{{.*}}, %c15_i32 : i32
lowlp.kernel @bf16_to_ui4(%p: !lowlp.ptr<bf16>, %q: !lowlp.ptr<ui4>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<bf16> -> !lowlp.global<32xbf16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<ui4> -> !lowlp.global<32xui4>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xbf16> -> !lowlp.tile<32xbf16, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xbf16, spatial(32)> -> !lowlp.tile<32xui4, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xui4, spatial(32)>, !lowlp.global<32xui4>
  lowlp.return
}

// f5e2m2, bias 1: exponent and mantissa move to those of an f32, 2^126 undoes the
// difference of biases. Every code is finite.
// CHECK-LABEL: gpu.func @e2m2_to_f32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 8.50705917E+37 : f32
// CHECK: %[[MAG:.*]] = arith.andi %{{.*}}, %c15_i32 : i32
// CHECK: %[[PLACED:.*]] = arith.shli %[[MAG]], %c21_i32 : i32
// CHECK: %[[F:.*]] = arith.bitcast %[[PLACED]] : i32 to f32
// CHECK: %[[V:.*]] = arith.mulf %[[F]], %[[SCALE]] : f32
// CHECK-NOT: arith.select
// CHECK: %[[S:.*]] = arith.shrui %{{.*}}, %c4_i32 : i32
// CHECK: %[[SIGN:.*]] = arith.shli %[[S]], %c31_i32 : i32
// CHECK: %[[B:.*]] = arith.bitcast %[[V]] : f32 to i32
// CHECK: arith.ori %[[B]], %[[SIGN]] : i32
lowlp.kernel @e2m2_to_f32(%p: !lowlp.ptr<!lowlp.float<e2m2>>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<!lowlp.float<e2m2>> -> !lowlp.global<32x!lowlp.float<e2m2>>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32x!lowlp.float<e2m2>>
    -> !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)> -> !lowlp.tile<32xf32, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  lowlp.return
}

// To f5e2m2: at most 7; below 1 codes count quarters, and above the mantissa is rounded to 2 bits. NaN becomes 7,
// code 15, whatever its sign.
// CHECK-LABEL: gpu.func @f32_to_e2m2
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG: %[[MAX:.*]] = arith.constant 7.000000e+00 : f32
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant 0x4A400000 : f32
// CHECK: %[[NAN:.*]] = arith.cmpf uno
// CHECK: arith.andi %{{.*}}, %c2147483647_i32 : i32
// CHECK: arith.cmpf ogt, %{{.*}}, %[[MAX]] : f32
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[MAGIC]] : f32
// CHECK: %[[SUMBITS:.*]] = arith.bitcast %[[SUM]] : f32 to i32
// CHECK: %[[SUB:.*]] = arith.subi %[[SUMBITS]], %{{.*}} : i32
// CHECK: %[[LAST:.*]] = arith.shrui %{{.*}}, %c21_i32 : i32
// CHECK: arith.andi %[[LAST]], %c1_i32 : i32
// CHECK: %[[NORMAL:.*]] = arith.shrui %{{.*}}, %c21_i32 : i32
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %{{.*}}, %[[ONE]] : f32
// CHECK: %[[CODE:.*]] = arith.select %[[SMALL]], %[[SUB]], %[[NORMAL]] : i32
// CHECK: %[[SIGN:.*]] = arith.shli %{{.*}}, %c4_i32 : i32
// CHECK: %[[SIGNED:.*]] = arith.ori %[[CODE]], %[[SIGN]] : i32
// CHECK: arith.select %[[NAN]], %c15_i32, %[[SIGNED]] : i32
lowlp.kernel @f32_to_e2m2(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<!lowlp.float<e2m2>>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<!lowlp.float<e2m2>> -> !lowlp.global<32x!lowlp.float<e2m2>>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf32> -> !lowlp.tile<32xf32, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32x!lowlp.float<e2m2>, spatial(32)>,
      !lowlp.global<32x!lowlp.float<e2m2>>
  lowlp.return
}

// f8E4M3FN has one NaN a sign, code 127, and no infinity.
// CHECK-LABEL: gpu.func @e4m3_to_f16
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.329228E+36 : f32
// CHECK: %[[MAG:.*]] = arith.andi %{{.*}}, %c127_i32 : i32
// CHECK: %[[V:.*]] = arith.mulf %{{.*}}, %[[SCALE]] : f32
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[MAG]], %c127_i32 : i32
// CHECK: arith.select %[[IS]], %[[NAN]], %[[V]] : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
lowlp.kernel @e4m3_to_f16(%p: !lowlp.ptr<f8E4M3FN>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f8E4M3FN> -> !lowlp.global<32xf8E4M3FN>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf8E4M3FN> -> !lowlp.tile<32xf8E4M3FN, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf8E4M3FN, spatial(32)> -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf16, spatial(32)>, !lowlp.global<32xf16>
  lowlp.return
}

// Infinity and all beyond 448 become 448; NaN stays NaN.
// CHECK-LABEL: gpu.func @bf16_to_e4m3
// CHECK-DAG: %[[MAX:.*]] = arith.constant 4.480000e+02 : f32
// CHECK: %[[NAN:.*]] = arith.cmpf uno
// CHECK: arith.cmpf ogt, %{{.*}}, %[[MAX]] : f32
// CHECK: arith.shli %{{.*}}, %c7_i32 : i32
// CHECK: arith.select %[[NAN]], %c127_i32, %{{.*}} : i32
lowlp.kernel @bf16_to_e4m3(%p: !lowlp.ptr<bf16>, %q: !lowlp.ptr<f8E4M3FN>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<bf16> -> !lowlp.global<32xbf16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f8E4M3FN> -> !lowlp.global<32xf8E4M3FN>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xbf16> -> !lowlp.tile<32xbf16, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xbf16, spatial(32)> -> !lowlp.tile<32xf8E4M3FN, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf8E4M3FN, spatial(32)>, !lowlp.global<32xf8E4M3FN>
  lowlp.return
}

// f8E5M2 has infinity, code 124, and NaNs above it.
// CHECK-LABEL: gpu.func @e5m2_to_f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: %[[MAG:.*]] = arith.andi %{{.*}}, %c127_i32 : i32
// CHECK: %[[ISINF:.*]] = arith.cmpi eq, %[[MAG]], %c124_i32 : i32
// CHECK: %[[IS:.*]] = arith.cmpi uge, %[[MAG]], %c124_i32 : i32
// CHECK: %[[SPECIAL:.*]] = arith.select %[[ISINF]], %[[INF]], %[[NAN]] : f32
// CHECK: arith.select %[[IS]], %[[SPECIAL]], %{{.*}} : f32
lowlp.kernel @e5m2_to_f32(%p: !lowlp.ptr<f8E5M2>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f8E5M2> -> !lowlp.global<32xf8E5M2>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf8E5M2> -> !lowlp.tile<32xf8E5M2, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf8E5M2, spatial(32)> -> !lowlp.tile<32xf32, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  lowlp.return
}

// Infinity becomes the largest number, 57344; NaN the quiet one, code 126.
// CHECK-LABEL: gpu.func @f16_to_e5m2
// CHECK-DAG: %[[MAX:.*]] = arith.constant 5.734400e+04 : f32
// CHECK: %[[NAN:.*]] = arith.cmpf uno
// CHECK: arith.cmpf ogt, %{{.*}}, %[[MAX]] : f32
// CHECK: arith.select %[[NAN]], %c126_i32, %{{.*}} : i32
lowlp.kernel @f16_to_e5m2(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<f8E5M2>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f8E5M2> -> !lowlp.global<32xf8E5M2>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf16, spatial(32)> -> !lowlp.tile<32xf8E5M2, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf8E5M2, spatial(32)>, !lowlp.global<32xf8E5M2>
  lowlp.return
}

// From codes to codes: f4E2M1FN has no NaN to look for, and its largest number, 6, fits ui3.
// CHECK-LABEL: gpu.func @e2m1_to_ui3
// CHECK-DAG: arith.constant 7.000000e+00 : f32
// CHECK: arith.andi %{{.*}}, %c7_i32 : i32
// CHECK: arith.shli %{{.*}}, %c22_i32 : i32
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: simt.atomic_rmw and
lowlp.kernel @e2m1_to_ui3(%p: !lowlp.ptr<f4E2M1FN>, %q: !lowlp.ptr<ui3>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f4E2M1FN> -> !lowlp.global<32xf4E2M1FN>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<ui3> -> !lowlp.global<32xui3>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf4E2M1FN> -> !lowlp.tile<32xf4E2M1FN, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf4E2M1FN, spatial(32)> -> !lowlp.tile<32xui3, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xui3, spatial(32)>, !lowlp.global<32xui3>
  lowlp.return
}

// Between the wide types.
// CHECK-LABEL: gpu.func @f16_to_bf16
// CHECK: %[[F:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: arith.truncf %[[F]] : f32 to bf16
lowlp.kernel @f16_to_bf16(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<bf16> -> !lowlp.global<32xbf16>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf16, spatial(32)> -> !lowlp.tile<32xbf16, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xbf16, spatial(32)>, !lowlp.global<32xbf16>
  lowlp.return
}

// Exact.
// CHECK-LABEL: gpu.func @bf16_to_f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK-NOT: arith.truncf
// CHECK: gpu.return
lowlp.kernel @bf16_to_f32(%p: !lowlp.ptr<bf16>, %q: !lowlp.ptr<f32>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<bf16> -> !lowlp.global<32xbf16>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xbf16> -> !lowlp.tile<32xbf16, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xbf16, spatial(32)> -> !lowlp.tile<32xf32, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf32, spatial(32)>, !lowlp.global<32xf32>
  lowlp.return
}

// One rounding.
// CHECK-LABEL: gpu.func @f32_to_f16
// CHECK-NOT: arith.extf
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: gpu.return
lowlp.kernel @f32_to_f16(%p: !lowlp.ptr<f32>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f32> -> !lowlp.global<32xf32>
  %w = lowlp.view_global %q shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %x = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<32xf32> -> !lowlp.tile<32xf32, spatial(32)>
  %y = lowlp.cast %x : !lowlp.tile<32xf32, spatial(32)> -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.store_global %y, %w[%c0] in_bounds : !lowlp.tile<32xf16, spatial(32)>, !lowlp.global<32xf16>
  lowlp.return
}

// 4 elements a thread: 24 bits in, 16 bits out. Element 3 begins at bit 18 there and at bit 12 here.
// CHECK-LABEL: gpu.func @packed
// CHECK: arith.shrui %[[W:.*]], %c18_i32 : i32
// CHECK: arith.shli %{{.*}}, %c4_i32 : i32
// CHECK: arith.shli %{{.*}}, %c8_i32 : i32
// CHECK: %[[LAST:.*]] = arith.shli %{{.*}}, %c12_i32 : i32
// CHECK: arith.ori %{{.*}}, %[[LAST]] : i32
!six = !lowlp.tile<128xsi6, local(4).spatial(32)>
!four = !lowlp.tile<128xf4E2M1FN, local(4).spatial(32)>
lowlp.kernel @packed(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<ui8> -> !lowlp.global<96xui8>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %bytes = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<96xui8> -> !lowlp.tile<96xui8, local(3).spatial(32)>
  %x = lowlp.view %bytes : !lowlp.tile<96xui8, local(3).spatial(32)> -> !six
  %y = lowlp.cast %x : !six -> !four
  %packed = lowlp.view %y : !four -> !lowlp.tile<64xui8, local(2).spatial(32)>
  lowlp.store_global %packed, %w[%c0] in_bounds : !lowlp.tile<64xui8, local(2).spatial(32)>, !lowlp.global<64xui8>
  lowlp.return
}
