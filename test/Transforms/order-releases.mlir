// RUN: lowlp-opt %s --lowlp-order-releases | FileCheck %s
// RUN: lowlp-opt %s --lowlp-order-releases --remarks-filter-missed=.* --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#flat = affine_map<(m) -> (m, 2)>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // Elements depend on other loads: 0 and 1 on the word, 1 on the scale, 2 and 3 on
    // the matrices. Two of them are enough.
    // CHECK-LABEL: gpu.func @sums
    gpu.func @sums(%s: !simt.ptr<shared>, %i: i64, %p: i32, %c: vector<4xf32>) -> vector<4xf32>
        attributes {lowlp.grid = #flat} {
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %word = simt.load %s[%i] align 4 : !simt.ptr<shared> -> f32
      %scale = simt.load %s[%i] align 2 : !simt.ptr<shared> -> f16
      %x = simt.ldmatrix %s[%i] : !simt.ptr<shared> -> vector<2xi32>
      %wide = arith.extf %scale : f16 to f32
      %both = arith.mulf %word, %wide : f32
      %words = vector.from_elements %word, %both : vector<2xf32>
      %x32 = vector.bitcast %x : vector<2xi32> to vector<2xf32>
      %0 = vector.insert_strided_slice %words, %c {offsets = [0], strides = [1]} : vector<2xf32> into vector<4xf32>
      %1 = vector.insert_strided_slice %x32, %0 {offsets = [2], strides = [1]} : vector<2xf32> into vector<4xf32>
      // CHECK: %[[SUMS:.*]] = arith.addf
      %sums = arith.addf %1, %c : vector<4xf32>
      // CHECK: %[[A:.*]] = vector.extract %[[SUMS]][1]
      // CHECK: %[[B:.*]] = vector.extract %[[SUMS]][2]
      // CHECK: simt.mbarrier_arrive {{.*}} by_warp after(%[[A]], %[[B]] : f32, f32)
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      gpu.return %sums : vector<4xf32>
    }

    // An address is a load's too. Numbers are values as well.
    // CHECK-LABEL: gpu.func @lookup
    gpu.func @lookup(%s: !simt.ptr<shared>, %i: i64, %p: i32) -> i32 attributes {lowlp.grid = #flat} {
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %index = simt.load %s[%i] align 4 : !simt.ptr<shared> -> i32
      %at = arith.extui %index : i32 to i64
      // CHECK: %[[VALUE:.*]] = simt.load {{.*}} -> i32
      // CHECK: %[[VALUE:.*]] = simt.load {{.*}} -> i32
      %value = simt.load %s[%at] align 4 : !simt.ptr<shared> -> i32
      // CHECK: by_warp after(%[[VALUE]] : i32)
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      gpu.return %value : i32
    }

    // A branch loads or not, and what it yields waits for that; of a word that was loaded
    // before, only if both regions yield it.
    // CHECK-LABEL: gpu.func @branches
    gpu.func @branches(%s: !simt.ptr<shared>, %i: i64, %p: i32, %if: i1) -> (i32, i32) attributes {lowlp.grid = #flat} {
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %word = simt.load %s[%i] align 4 : !simt.ptr<shared> -> i32
      // CHECK: %[[YIELDED:.*]]:2 = scf.if
      %yielded:2 = scf.if %if -> (i32, i32) {
        %inside = simt.load %s[%i] align 4 : !simt.ptr<shared> -> i32
        scf.yield %inside, %word : i32, i32
      } else {
        %double = arith.addi %word, %word : i32
        scf.yield %p, %double : i32, i32
      }
      // CHECK: by_warp after(%[[YIELDED]]#0, %[[YIELDED]]#1 : i32, i32)
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      gpu.return %yielded#0, %yielded#1 : i32, i32
    }

    // Operands of products are there when these are waited for.
    // CHECK-LABEL: gpu.func @warpgroups
    gpu.func @warpgroups(%s: !simt.ptr<shared>, %i: i64, %p: i32) -> vector<4xf32> attributes {lowlp.grid = #flat} {
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %words = simt.load %s[%i] align 16 : !simt.ptr<shared> -> vector<4xi32>
      %a = vector.bitcast %words : vector<4xi32> to vector<8xf16>
      %f = simt.wgmma_fence of %a : vector<8xf16>
      %w = simt.wgmma %f, %s[%i] swizzle 0 leading 128 stride 256 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      simt.wgmma_commit
      %d = simt.wgmma_wait 0 takes %w : (!simt.accumulators<vector<4xf32>>) -> vector<4xf32>
      // CHECK: %[[ONE:.*]] = vector.extract %{{.*}}[0]
      // CHECK: by_warp after(%[[ONE]] : f32)
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      gpu.return %d : vector<4xf32>
    }

    // CHECK-LABEL: gpu.func @kept
    // CHECK-NOT: after(
    gpu.func @kept(%s: !simt.ptr<shared>, %i: i64, %j: i64, %p: i32, %if: i1, %a: vector<8xf16>, %c: vector<4xf32>)
        -> (i32, vector<4xf32>, vector<4xf32>, i32) attributes {lowlp.grid = #flat} {
      // A select may be a branch, and a result of a product is late.
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %word = simt.load %s[%i] align 4 : !simt.ptr<shared> -> i32
      %chosen = arith.select %if, %word, %p : i32
      // REMARK: Missed{{.*}}no value that is used after it depends on all loads
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %b = simt.load %s[%i] align 8 : !simt.ptr<shared> -> vector<4xf16>
      %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
      // REMARK: Missed{{.*}}no value that is used after it depends on all loads
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      // REMARK: Missed{{.*}}its place was waited for in another block
      simt.mbarrier_arrive %s[%j] by_warp : !simt.ptr<shared>
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      scf.if %if {
        %hidden = simt.load %s[%i] align 4 : !simt.ptr<shared> -> i32
        simt.store %hidden, %s[%j] align 4 : i32, !simt.ptr<shared>
      }
      // REMARK: Missed{{.*}}no value that is used after it depends on all loads
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %old = simt.atomic_rmw or %p, %s[%j] : i32, !simt.ptr<shared>
      // REMARK: Missed{{.*}}more than loads may read the stage
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %w = simt.wgmma %a, %s[%i] swizzle 0 leading 128 stride 256 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      simt.wgmma_commit
      // REMARK: Missed{{.*}}products of a warpgroup are not waited for
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      %e = simt.wgmma_wait 0 takes %w : (!simt.accumulators<vector<4xf32>>) -> vector<4xf32>
      gpu.return %chosen, %d, %e, %old : i32, vector<4xf32>, vector<4xf32>, i32
    }

    // CHECK-LABEL: gpu.func @three_dimensions
    // CHECK-NOT: after(
    gpu.func @three_dimensions(%s: !simt.ptr<shared>, %i: i64, %p: i32) -> i32
        attributes {lowlp.grid = affine_map<(m) -> (m, 1, 1)>} {
      simt.mbarrier_wait %s[%i] parity %p : !simt.ptr<shared>
      %word = simt.load %s[%i] align 4 : !simt.ptr<shared> -> i32
      // REMARK: Missed{{.*}}the grid has three dimensions
      simt.mbarrier_arrive %s[%i] by_warp : !simt.ptr<shared>
      gpu.return %word : i32
    }
  }
}
