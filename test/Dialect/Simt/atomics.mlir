// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @atomics
func.func @atomics(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %x: i32, %f: f32, %h: f16,
                   %pair: vector<2xbf16>) {
  // CHECK: simt.atomic_rmw xor %{{.*}}, %{{.*}}[%{{.*}}] : i32, <global>
  %0 = simt.atomic_rmw xor %x, %g[%i] : i32, !simt.ptr<global>
  // CHECK: simt.atomic_rmw min_s
  %1 = simt.atomic_rmw min_s %x, %s[%i] : i32, !simt.ptr<shared>
  // CHECK: simt.atomic_rmw max_u
  %2 = simt.atomic_rmw max_u %x, %g[%i] : i32, !simt.ptr<global>
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : f32, <shared>
  %3 = simt.atomic_rmw add %f, %s[%i] : f32, !simt.ptr<shared>
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : f16, <global>
  %4 = simt.atomic_rmw add %h, %g[%i] : f16, !simt.ptr<global>
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}}] : vector<2xbf16>, <global>
  %5 = simt.atomic_rmw add %pair, %g[%i] : vector<2xbf16>, !simt.ptr<global>
  // CHECK: simt.atomic_cas %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] : <shared>
  %6 = simt.atomic_cas %x, %0, %s[%i] : !simt.ptr<shared>
  // CHECK: %[[Q:.*]] = simt.offset %{{.*}}[%{{.*}}] : <global>
  %q = simt.offset %g[%i] : !simt.ptr<global>
  // CHECK: simt.acquire %{{.*}}, %[[Q]][%{{.*}}] : <global>
  simt.acquire %x, %q[%i] : !simt.ptr<global>
  // CHECK: simt.release store %{{.*}}, %[[Q]][%{{.*}}] : <global>
  simt.release store %x, %q[%i] : !simt.ptr<global>
  // CHECK: simt.release add
  simt.release add %x, %q[%i] : !simt.ptr<global>
  return
}
