// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// The same bits under another type. Kernels load one type and store the other.

// Between types of at most 8 bits a view is nothing: 3 bytes are 4 codes of 6 bits.
// CHECK-LABEL: gpu.func @bytes_to_codes
// CHECK-COUNT-3: simt.load %{{.*}} -> i8
// CHECK-NOT: vector.bitcast
// CHECK: arith.andi %{{.*}}, %c63_i32 : i32
// CHECK: simt.atomic_rmw and
lowlp.kernel @bytes_to_codes(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<si6>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<ui8> -> !lowlp.global<96xui8>
  %w = lowlp.view_global %q shape [128] : !lowlp.ptr<si6> -> !lowlp.global<128xsi6>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<96xui8> -> !lowlp.tile<96xui8, local(3).spatial(32)>
  %u = lowlp.view %t : !lowlp.tile<96xui8, local(3).spatial(32)> -> !lowlp.tile<128xsi6, local(4).spatial(32)>
  lowlp.store_global %u, %w[%c0] : !lowlp.tile<128xsi6, local(4).spatial(32)>, !lowlp.global<128xsi6>
  lowlp.return
}

// CHECK-LABEL: gpu.func @codes_to_bytes
// CHECK-COUNT-8: simt.load %{{.*}} -> i8
// CHECK-NOT: vector.bitcast
// CHECK-COUNT-3: simt.store %{{.*}} : i8, <global>
lowlp.kernel @codes_to_bytes(%p: !lowlp.ptr<si6>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [128] : !lowlp.ptr<si6> -> !lowlp.global<128xsi6>
  %w = lowlp.view_global %q shape [96] : !lowlp.ptr<ui8> -> !lowlp.global<96xui8>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<128xsi6> -> !lowlp.tile<128xsi6, local(4).spatial(32)>
  %u = lowlp.view %t : !lowlp.tile<128xsi6, local(4).spatial(32)> -> !lowlp.tile<96xui8, local(3).spatial(32)>
  lowlp.store_global %u, %w[%c0] : !lowlp.tile<96xui8, local(3).spatial(32)>, !lowlp.global<96xui8>
  lowlp.return
}

// CHECK-LABEL: gpu.func @even_halves
// CHECK: %[[B:.*]] = vector.bitcast %{{.*}} : vector<2xf16> to vector<1xi32>
// CHECK: %[[W:.*]] = vector.extract %[[B]][0] : i32 from vector<1xi32>
// CHECK: %[[BYTE:.*]] = arith.andi %[[W]], %c255_i32 : i32
// CHECK: arith.trunci %[[BYTE]] : i32 to i8
// CHECK: arith.shrui %[[W]], %c8_i32 : i32
lowlp.kernel @even_halves(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %w = lowlp.view_global %q shape [128] : !lowlp.ptr<ui8> -> !lowlp.global<128xui8>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<64xf16> -> !lowlp.tile<64xf16, local(2).spatial(32)>
  %u = lowlp.view %t : !lowlp.tile<64xf16, local(2).spatial(32)> -> !lowlp.tile<128xui8, local(4).spatial(32)>
  lowlp.store_global %u, %w[%c0] : !lowlp.tile<128xui8, local(4).spatial(32)>, !lowlp.global<128xui8>
  lowlp.return
}

// 3 halves are one and a half words: the rest of the second one is zero.
// CHECK-LABEL: gpu.func @odd_halves
// CHECK-DAG: %[[PAD:.*]] = arith.constant {{.*}} : {{f16|vector<4xf16>}}
// CHECK: vector.bitcast %{{.*}} : vector<4xf16> to vector<2xi32>
// CHECK-COUNT-6: simt.store %{{.*}} align 1 : i8, <global>
lowlp.kernel @odd_halves(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<ui8>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<f16> -> !lowlp.global<96xf16>
  %w = lowlp.view_global %q shape [192] : !lowlp.ptr<ui8> -> !lowlp.global<192xui8>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<96xf16> -> !lowlp.tile<96xf16, local(3).spatial(32)>
  %u = lowlp.view %t : !lowlp.tile<96xf16, local(3).spatial(32)> -> !lowlp.tile<192xui8, local(6).spatial(32)>
  lowlp.store_global %u, %w[%c0] : !lowlp.tile<192xui8, local(6).spatial(32)>, !lowlp.global<192xui8>
  lowlp.return
}

// CHECK-LABEL: gpu.func @bytes_to_odd_halves
// CHECK: vector.bitcast %{{.*}} : vector<2xi32> to vector<4xbf16>
// CHECK-COUNT-3: simt.store %{{.*}} align 2 : bf16, <global>
// CHECK-NOT: simt.store
lowlp.kernel @bytes_to_odd_halves(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [192] : !lowlp.ptr<ui8> -> !lowlp.global<192xui8>
  %w = lowlp.view_global %q shape [96] : !lowlp.ptr<bf16> -> !lowlp.global<96xbf16>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<192xui8> -> !lowlp.tile<192xui8, local(6).spatial(32)>
  %u = lowlp.view %t : !lowlp.tile<192xui8, local(6).spatial(32)> -> !lowlp.tile<96xbf16, local(3).spatial(32)>
  lowlp.store_global %u, %w[%c0] : !lowlp.tile<96xbf16, local(3).spatial(32)>, !lowlp.global<96xbf16>
  lowlp.return
}

// CHECK-LABEL: gpu.func @half_to_brain
// CHECK: vector.bitcast %{{.*}} : vector<2xf16> to vector<2xbf16>
lowlp.kernel @half_to_brain(%p: !lowlp.ptr<f16>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<bf16> -> !lowlp.global<64xbf16>
  %t = lowlp.load_global %v[%c0] : !lowlp.global<64xf16> -> !lowlp.tile<64xf16, local(2).spatial(32)>
  %u = lowlp.view %t : !lowlp.tile<64xf16, local(2).spatial(32)> -> !lowlp.tile<64xbf16, local(2).spatial(32)>
  lowlp.store_global %u, %w[%c0] : !lowlp.tile<64xbf16, local(2).spatial(32)>, !lowlp.global<64xbf16>
  lowlp.return
}
