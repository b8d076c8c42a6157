// RUN: lowlp-opt %s --verify-roundtrip | FileCheck %s
// RUN: lowlp-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @memory
// CHECK-SAME: %[[G:.*]]: !simt.ptr<global>, %[[S:.*]]: !simt.ptr<shared>, %[[I:.*]]: i64
func.func @memory(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64) {
  // CHECK: %[[V:.*]] = simt.load %[[G]][%[[I]]] align 16 : <global> -> vector<4xi32>
  // GENERIC: "simt.load"(%{{.*}}, %{{.*}}) <{align = 16 : i64}> : (!simt.ptr<global>, i64) -> vector<4xi32>
  %v = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<4xi32>
  // CHECK: simt.load %[[S]][%[[I]]] align 1 : <shared> -> i8
  %byte = simt.load %s[%i] align 1 : !simt.ptr<shared> -> i8
  // CHECK: simt.load %[[G]][%[[I]]] align 2 : <global> -> bf16
  %half = simt.load %g[%i] align 2 : !simt.ptr<global> -> bf16
  // CHECK: simt.store %[[V]], %[[S]][%[[I]]] align 8 : vector<4xi32>, <shared>
  // GENERIC: "simt.store"(%{{.*}}, %{{.*}}, %{{.*}}) <{align = 8 : i64}> : (vector<4xi32>, !simt.ptr<shared>, i64) -> ()
  simt.store %v, %s[%i] align 8 : vector<4xi32>, !simt.ptr<shared>
  // CHECK: simt.store %{{.*}}, %[[G]][%[[I]]] align 4 {note} : bf16, <global>
  simt.store %half, %g[%i] align 4 {note} : bf16, !simt.ptr<global>
  return
}

// CHECK-LABEL: func.func @shared
func.func @shared() -> !simt.ptr<shared> {
  // CHECK: simt.shared_memory 1024 : <shared>
  // GENERIC: "simt.shared_memory"() <{offset = 1024 : i64}> : () -> !simt.ptr<shared>
  %p = simt.shared_memory 1024 : !simt.ptr<shared>
  return %p : !simt.ptr<shared>
}

// CHECK-LABEL: func.func @copies
func.func @copies(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64) {
  // CHECK: simt.copy_async %{{.*}}[%{{.*}}] to %{{.*}}[%{{.*}}] bytes 16 : <global> to <shared>
  // GENERIC: "simt.copy_async"({{.*}}) <{bytes = 16 : i64}> : (!simt.ptr<global>, i64, !simt.ptr<shared>, i64) -> ()
  simt.copy_async %g[%i] to %s[%i] bytes 16 : !simt.ptr<global> to !simt.ptr<shared>
  // CHECK: simt.copy_async_commit
  // GENERIC: "simt.copy_async_commit"() : () -> ()
  simt.copy_async_commit
  // CHECK: simt.copy_async_wait 1
  // GENERIC: "simt.copy_async_wait"() <{n = 1 : i64}> : () -> ()
  simt.copy_async_wait 1
  return
}

// CHECK-LABEL: func.func @atomics
func.func @atomics(%g: !simt.ptr<global>, %s: !simt.ptr<shared>, %i: i64, %x: i32) {
  // CHECK: simt.atomic_rmw and %{{.*}}, %{{.*}}[%{{.*}}] : i32, <global>
  // GENERIC: "simt.atomic_rmw"(%{{.*}}, %{{.*}}, %{{.*}}) <{kind = 0 : i32}> : (i32, !simt.ptr<global>, i64) -> i32
  %0 = simt.atomic_rmw and %x, %g[%i] : i32, !simt.ptr<global>
  // CHECK: simt.atomic_rmw or %{{.*}}, %{{.*}}[%{{.*}}] : i32, <shared>
  %1 = simt.atomic_rmw or %x, %s[%i] : i32, !simt.ptr<shared>
  // CHECK: simt.atomic_rmw add
  %2 = simt.atomic_rmw add %x, %g[%i] : i32, !simt.ptr<global>
  // CHECK: simt.atomic_rmw exchange
  %3 = simt.atomic_rmw exchange %x, %g[%i] : i32, !simt.ptr<global>
  return
}

// CHECK-LABEL: func.func @assert
func.func @assert(%inside: i1) {
  // CHECK: simt.assert %{{.*}}, "element lies outside of the view"
  // GENERIC: "simt.assert"(%{{.*}}) <{message = "element lies outside of the view"}> : (i1) -> ()
  simt.assert %inside, "element lies outside of the view"
  return
}

// CHECK-LABEL: func.func @words
func.func @words(%condition: i1, %low: i32, %high: i32, %n: i32) {
  // CHECK: simt.ballot %{{.*}}
  // GENERIC: "simt.ballot"(%{{.*}}) : (i1) -> i32
  %votes = simt.ballot %condition
  // CHECK: simt.funnel_shift %{{.*}}, %{{.*}}, %{{.*}}{{$}}
  %left = simt.funnel_shift %low, %high, %n
  // CHECK: simt.funnel_shift %{{.*}}, %{{.*}}, %{{.*}} right
  // GENERIC: "simt.funnel_shift"(%{{.*}}, %{{.*}}, %{{.*}}) <{right}> : (i32, i32, i32) -> i32
  %right = simt.funnel_shift %left, %votes, %n right
  // CHECK: simt.exit
  // GENERIC: "simt.exit"() : () -> ()
  simt.exit
  return
}
