// RUN: lowlp-opt %s --allow-unregistered-dialect --lowlp-sink-selects | FileCheck %s
// RUN: lowlp-opt %s --allow-unregistered-dialect --lowlp-sink-selects --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The accumulators of a tile begin anew where a tile ends: the branch that is there
// anyway yields them.
// CHECK-LABEL: func.func @accumulators
// CHECK-SAME: (%[[ENDS:.*]]: i1, %[[ACC:.*]]: vector<64xf32>, %[[OTHER:.*]]: vector<8xf32>)
func.func @accumulators(%ends: i1, %acc: vector<64xf32>, %other: vector<8xf32>) -> (vector<64xf32>, vector<8xf32>) {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<64xf32>
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<8xf32>
  %zero = arith.constant dense<0.0> : vector<64xf32>
  %one = arith.constant dense<1.0> : vector<8xf32>
  // CHECK-NOT: arith.select
  // CHECK: %[[RESULTS:.*]]:2 = scf.if %[[ENDS]] -> (vector<64xf32>, vector<8xf32>) {
  // CHECK-NEXT: "test.finish"(%[[ACC]])
  // CHECK-NEXT: scf.yield %[[ZERO]], %[[OTHER]] : vector<64xf32>, vector<8xf32>
  // CHECK-NEXT: } else {
  // CHECK-NEXT: scf.yield %[[ACC]], %[[ONE]] : vector<64xf32>, vector<8xf32>
  %accumulators = arith.select %ends, %zero, %acc : vector<64xf32>
  scf.if %ends {
    "test.finish"(%acc) : (vector<64xf32>) -> ()
  }
  %behind = arith.select %ends, %other, %one : vector<8xf32>
  // CHECK: return %[[RESULTS]]#0, %[[RESULTS]]#1
  return %accumulators, %behind : vector<64xf32>, vector<8xf32>
}

// Results that the branch has already, and both its regions, stay.
// CHECK-LABEL: func.func @with_results
func.func @with_results(%ends: i1, %acc: vector<4xf32>, %other: vector<4xf32>) -> (index, vector<4xf32>) {
  %accumulators = arith.select %ends, %other, %acc : vector<4xf32>
  // CHECK: %[[RESULTS:.*]]:2 = scf.if %{{.*}} -> (index, vector<4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = "test.number"() {first} : () -> index
  // CHECK-NEXT: scf.yield %[[A]], %{{.*}} : index, vector<4xf32>
  // CHECK-NEXT: } else {
  // CHECK-NEXT: %[[B:.*]] = "test.number"() {second} : () -> index
  // CHECK-NEXT: scf.yield %[[B]], %{{.*}} : index, vector<4xf32>
  // CHECK-NEXT: } {place}
  %number = scf.if %ends -> (index) {
    %a = "test.number"() {first} : () -> index
    scf.yield %a : index
  } else {
    %b = "test.number"() {second} : () -> index
    scf.yield %b : index
  } {place}
  // CHECK: return %[[RESULTS]]#0, %[[RESULTS]]#1
  return %number, %accumulators : index, vector<4xf32>
}

// What the branch itself uses, what comes of it or after it, another
// condition, numbers.
// REMARK-COUNT-2: [Missed] branch | Category:lowlp-sink-selects | Function=stay | Op=arith.select, Reason="the choice is used before the branch of its condition ends, or one of its values is made after the branch begins"
// CHECK-LABEL: func.func @stay
func.func @stay(%ends: i1, %not: i1, %acc: vector<4xf32>, %other: vector<4xf32>, %i: index, %j: index)
    -> (vector<4xf32>, vector<4xf32>, index) {
  // CHECK-COUNT-3: arith.select
  // CHECK: scf.if %{{.*}} {
  // CHECK-COUNT-1: arith.select
  %used = arith.select %ends, %other, %acc : vector<4xf32>
  %unlike = arith.select %not, %other, %acc : vector<4xf32>
  %small = arith.select %ends, %i, %j : index
  scf.if %ends {
    "test.finish"(%used) : (vector<4xf32>) -> ()
  }
  %made = "test.accumulators"() : () -> vector<4xf32>
  %behind = arith.select %ends, %made, %unlike : vector<4xf32>
  return %used, %behind, %small : vector<4xf32>, vector<4xf32>, index
}

// A select of what another chose by the same condition.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[ENDS:.*]]: i1, %[[A:.*]]: vector<4xf32>, %[[B:.*]]: vector<4xf32>, %[[D:.*]]: vector<4xf32>)
func.func @chain(%ends: i1, %a: vector<4xf32>, %b: vector<4xf32>, %d: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  // CHECK: %[[RESULTS:.*]]:2 = scf.if %[[ENDS]]
  // CHECK: scf.yield %[[A]], %[[A]] :
  // CHECK: scf.yield %[[B]], %[[D]] :
  %first = arith.select %ends, %a, %b : vector<4xf32>
  scf.if %ends {
    "test.finish"(%a) : (vector<4xf32>) -> ()
  }
  %second = arith.select %ends, %first, %d : vector<4xf32>
  // CHECK: return %[[RESULTS]]#0, %[[RESULTS]]#1
  return %first, %second : vector<4xf32>, vector<4xf32>
}
