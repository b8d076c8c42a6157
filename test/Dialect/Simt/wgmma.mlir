// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @products
func.func @products(%a: vector<8xf16>, %c: vector<32xf32>, %p: !simt.ptr<shared>, %o: i64) -> vector<32xf32> {
  // CHECK: %[[F:.*]]:2 = simt.wgmma_fence of %{{.*}}, %{{.*}} : vector<8xf16>, vector<32xf32>
  %f:2 = simt.wgmma_fence of %a, %c : vector<8xf16>, vector<32xf32>
  // CHECK: %[[S:.*]] = simt.wgmma %[[F]]#0, %{{.*}}[%{{.*}}] swizzle 128 leading 16 stride 1024 plus %[[F]]#1 : vector<32xf32> : vector<8xf16>, <shared> -> <vector<32xf32>>
  // GENERIC: "simt.wgmma"(%{{.*}}) <{leading = 16 : i64, stride = 1024 : i64, swizzle = 128 : i64}> : (vector<8xf16>, !simt.ptr<shared>, i64, vector<32xf32>) -> !simt.accumulators<vector<32xf32>>
  %s = simt.wgmma %f#0, %p[%o] swizzle 128 leading 16 stride 1024 plus %f#1 : vector<32xf32>
    : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<32xf32>>
  // CHECK: %[[T:.*]] = simt.wgmma %[[F]]#0, %{{.*}}[%{{.*}}] swizzle 0 leading 128 stride 256 plus %[[S]] : !simt.accumulators<vector<32xf32>>
  %t = simt.wgmma %f#0, %p[%o] swizzle 0 leading 128 stride 256 plus %s : !simt.accumulators<vector<32xf32>>
    : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<32xf32>>
  // CHECK: simt.wgmma_commit
  simt.wgmma_commit
  // CHECK: simt.take_turn of 2{{$}}
  simt.take_turn of 2
  // CHECK: simt.give_turn of 2{{$}}
  simt.give_turn of 2
  // CHECK: %[[D:.*]] = simt.wgmma_wait 0 takes %[[T]] : (!simt.accumulators<vector<32xf32>>) -> vector<32xf32>
  %d = simt.wgmma_wait 0 takes %t : (!simt.accumulators<vector<32xf32>>) -> vector<32xf32>
  // CHECK: return %[[D]]
  return %d : vector<32xf32>
}

// CHECK-LABEL: func.func @packed
func.func @packed(%q: vector<4xi32>, %p: !simt.ptr<shared>, %o: i64) {
  // CHECK: simt.wgmma_fence{{$}}
  simt.wgmma_fence
  // CHECK: simt.wgmma %{{.*}} as si8, %{{.*}}[%{{.*}}] as ui8 swizzle 64 leading 16 stride 512 : vector<4xi32>, <shared> -> <vector<4xi32>>
  %u = simt.wgmma %q as si8, %p[%o] as ui8 swizzle 64 leading 16 stride 512
    : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xi32>>
  // CHECK: simt.wgmma %{{.*}} as ui1, %{{.*}}[%{{.*}}] as ui1 swizzle 128 leading 16 stride 1024 : vector<4xi32>, <shared> -> <vector<32xi32>>
  %w = simt.wgmma %q as ui1, %p[%o] as ui1 swizzle 128 leading 16 stride 1024
    : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<32xi32>>
  // CHECK: simt.wgmma %{{.*}} as f8E4M3FN, %{{.*}}[%{{.*}}] as f8E5M2 swizzle 32 leading 16 stride 256
  %v = simt.wgmma %q as f8E4M3FN, %p[%o] as f8E5M2 swizzle 32 leading 16 stride 256
    : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<128xf32>>
  simt.wgmma_commit
  // CHECK: simt.wgmma_wait 1{{$}}
  simt.wgmma_wait 1
  return
}
