// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @mma
func.func @mma(%a: vector<8xf16>, %b: vector<4xf16>, %abf: vector<8xbf16>, %bbf: vector<4xbf16>, %c: vector<4xf32>) {
  // CHECK: %[[D:.*]] = simt.mma %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf16>, vector<4xf16>, vector<4xf32>
  // GENERIC: "simt.mma"(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
  // CHECK: simt.mma %{{.*}}, %{{.*}}, %[[D]] : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
  %e = simt.mma %abf, %bbf, %d : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
  return
}

// CHECK-LABEL: func.func @packed_mma
func.func @packed_mma(%a: vector<4xi32>, %b: vector<2xi32>, %h: vector<1xi32>, %c: vector<4xi32>, %f: vector<4xf32>) {
  // CHECK: simt.mma %{{.*}} as si8, %{{.*}} as ui8, %{{.*}} : vector<4xi32>, vector<2xi32>, vector<4xi32>
  // GENERIC: "simt.mma"(%{{.*}}, %{{.*}}, %{{.*}}) <{aType = si8, bType = ui8}>
  %0 = simt.mma %a as si8, %b as ui8, %c : vector<4xi32>, vector<2xi32>, vector<4xi32>
  // CHECK: simt.mma %{{.*}} as ui1, %{{.*}} as ui1, %{{.*}} : vector<4xi32>, vector<2xi32>, vector<4xi32>
  %1 = simt.mma %a as ui1, %b as ui1, %0 : vector<4xi32>, vector<2xi32>, vector<4xi32>
  // CHECK: simt.mma %{{.*}} as ui1, %{{.*}} as ui1, %{{.*}} : vector<2xi32>, vector<1xi32>, vector<4xi32>
  %3 = simt.mma %b as ui1, %h as ui1, %1 : vector<2xi32>, vector<1xi32>, vector<4xi32>
  // CHECK: simt.mma %{{.*}} as f8E4M3FN, %{{.*}} as f8E5M2, %{{.*}} : vector<4xi32>, vector<2xi32>, vector<4xf32>
  %2 = simt.mma %a as f8E4M3FN, %b as f8E5M2, %f : vector<4xi32>, vector<2xi32>, vector<4xf32>
  return
}

// CHECK-LABEL: func.func @matrices
func.func @matrices(%p: !simt.ptr<shared>, %offset: i64) {
  // CHECK: %[[V:.*]] = simt.ldmatrix %{{.*}}[%{{.*}}] : <shared> -> vector<4xi32>
  %v = simt.ldmatrix %p[%offset] : !simt.ptr<shared> -> vector<4xi32>
  // CHECK: %[[W:.*]] = simt.ldmatrix %{{.*}}[%{{.*}}] trans : <shared> -> vector<1xi32>
  %w = simt.ldmatrix %p[%offset] trans : !simt.ptr<shared> -> vector<1xi32>
  // CHECK: simt.stmatrix %[[V]], %{{.*}}[%{{.*}}] trans : vector<4xi32>, <shared>
  simt.stmatrix %v, %p[%offset] trans : vector<4xi32>, !simt.ptr<shared>
  // CHECK: simt.stmatrix %[[W]], %{{.*}}[%{{.*}}] : vector<1xi32>, <shared>
  simt.stmatrix %w, %p[%offset] : vector<1xi32>, !simt.ptr<shared>
  return
}
