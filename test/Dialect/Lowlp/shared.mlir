// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK: lowlp.kernel @shared
lowlp.kernel @shared() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  // CHECK: %[[S:.*]] = lowlp.alloc_shared : !lowlp.shared<3x16x8xf16, local(3, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 2)>
  // GENERIC: "lowlp.alloc_shared"() : () -> !lowlp.shared<3x16x8xf16,
  %s = lowlp.alloc_shared : !lowlp.shared<3x16x8xf16, local(3, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 2)>
  // CHECK: %[[T:.*]] = lowlp.load_shared %[[S]][%[[C0:.*]], %[[C0]], %[[C0]]] : !lowlp.shared<3x16x8xf16, {{.*}}> -> !lowlp.tile<16x2xf16, spatial(16, 2)>
  // GENERIC: "lowlp.load_shared"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!lowlp.shared<3x16x8xf16,
  %t = lowlp.load_shared %s[%c0, %c0, %c0]
    : !lowlp.shared<3x16x8xf16, local(3, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 2)>
    -> !lowlp.tile<16x2xf16, spatial(16, 2)>
  // CHECK: %[[P:.*]] = lowlp.alloc_shared {test.note} : !lowlp.shared<4x32xf16>
  %p = lowlp.alloc_shared {test.note} : !lowlp.shared<4x32xf16>
  // CHECK: lowlp.store_shared %[[T]], %[[P]][%{{.*}}, %{{.*}}] : !lowlp.tile<16x2xf16, spatial(16, 2)>, !lowlp.shared<4x32xf16>
  // GENERIC: "lowlp.store_shared"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!lowlp.tile<16x2xf16,
  lowlp.store_shared %t, %p[%c0, %c0] : !lowlp.tile<16x2xf16, spatial(16, 2)>, !lowlp.shared<4x32xf16>
  // CHECK: lowlp.synchronize
  // GENERIC: "lowlp.synchronize"() : () -> ()
  lowlp.synchronize
  // CHECK: lowlp.load_shared %[[P]][%{{.*}}, %{{.*}}] in_bounds :
  // GENERIC: "lowlp.load_shared"({{.*}}) <{in_bounds}>
  %u = lowlp.load_shared %p[%c0, %c0] in_bounds : !lowlp.shared<4x32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  // CHECK: lowlp.store_shared %{{.*}}, %[[P]][%{{.*}}, %{{.*}}] in_bounds :
  lowlp.store_shared %u, %p[%c0, %c0] in_bounds : !lowlp.tile<32xf16, spatial(32)>, !lowlp.shared<4x32xf16>
  lowlp.return
}

// CHECK: lowlp.kernel @warpgroups
lowlp.kernel @warpgroups() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64} {
  // CHECK: lowlp.synchronize_warpgroups{{$}}
  lowlp.synchronize_warpgroups
  lowlp.return
}

// CHECK: func.func private @types(!lowlp.shared<4x4xui3>, !lowlp.shared<8x8xf32, swizzle(local(8, 8), dim=0)>)
func.func private @types(!lowlp.shared<4x4xui3, swizzle(local(4, 1), dim=1).local(1, 4)>,
                         !lowlp.shared<8x8xf32, swizzle(local(8, 8), dim=0).local(1, 1)>)
