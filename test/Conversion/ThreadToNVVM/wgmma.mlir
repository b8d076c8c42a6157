// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @product
    gpu.func @product(%g: !simt.ptr<global>, %i: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      %a = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<8xf16>
      %c = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<4xf32>
      // Registers of A are words.
      // CHECK: %[[A:.*]] = llvm.bitcast %{{.*}} : vector<8xf16> to vector<4xi32>
      // CHECK: %[[F:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.fence.sync.aligned;", "=r,=r,=r,=r,=f,=f,=f,=f,0,1,2,3,4,5,6,7,~{memory}"
      // CHECK-SAME: (i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(i32, i32, i32, i32, f32, f32, f32, f32)>
      // CHECK: llvm.extractvalue %[[F]][0]
      %f:2 = simt.wgmma_fence of %a, %c : vector<8xf16>, vector<4xf32>
      // 128-byte swizzle, 1024 / 16 = 64 in bits 32 to 45, 16 / 16 = 1 in bits 16 to 29.
      // CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
      // CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32) : i32
      // CHECK: %[[START:.*]] = llvm.lshr %[[ADDRESS]], %[[FOUR]] : i32
      // CHECK: %[[LEADING:.*]] = llvm.mlir.constant(65536 : i32) : i32
      // CHECK: %[[LOW:.*]] = llvm.or %[[START]], %[[LEADING]] : i32
      // CHECK: %[[HIGH:.*]] = llvm.mlir.constant(1073741888 : i32) : i32
      // CHECK: llvm.inline_asm asm_dialect = att "mov.b64 $0, {$1, $2};", "=l,r,r" %[[LOW]], %[[HIGH]] : (i32, i32) -> i64
      // CHECK: %[[D:.*]] = llvm.inline_asm has_side_effects asm_dialect = att
      // CHECK-SAME: setp.ne.b32 accumulate, 1, 0;\0A\09wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, accumulate, 1, 1, 0;
      // CHECK-SAME: "=f,=f,=f,=f,r,r,r,r,l,0,1,2,3,~{memory}"
      %t = simt.wgmma %f#0, %s[%i] swizzle 128 leading 16 stride 1024 plus %f#1 : vector<4xf32>
        : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      // 32 bytes further along K: 2 more, and the same address.
      // CHECK: llvm.lshr
      // CHECK: %[[FIRST:.*]] = llvm.inline_asm {{.*}}"mov.b64
      // CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
      // CHECK: llvm.add %[[FIRST]], %[[TWO]] : i64
      %more = arith.constant 32 : i64
      %next = arith.addi %i, %more : i64
      %t2 = simt.wgmma %f#0, %s[%next] swizzle 128 leading 16 stride 1024 plus %t : !simt.accumulators<vector<4xf32>>
        : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      // 2 (x + 48) bytes: the address of 2 x, and 6 more.
      // CHECK: llvm.mul
      // CHECK: %[[X:.*]] = llvm.mul %{{.*}}, %{{.*}} : i64
      // CHECK: llvm.getelementptr %{{.*}}[%[[X]]]
      // CHECK: %[[FIRST:.*]] = llvm.inline_asm {{.*}}"mov.b64
      // CHECK: %[[SIX:.*]] = llvm.mlir.constant(6 : i64) : i64
      // CHECK: llvm.add %[[FIRST]], %[[SIX]] : i64
      %halves = arith.constant 48 : i64
      %two = arith.constant 2 : i64
      %element = arith.addi %i, %halves : i64
      %bytes = arith.muli %element, %two : i64
      %t3 = simt.wgmma %f#0, %s[%bytes] swizzle 128 leading 16 stride 1024 plus %t2 : !simt.accumulators<vector<4xf32>>
        : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      // CHECK: "wgmma.commit_group.sync.aligned;", "~{memory}"
      simt.wgmma_commit
      // Warpgroup w takes its turn at barrier 2 + w, and gives the next one at that of the next.
      // CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
      // CHECK: %[[GROUP:.*]] = llvm.udiv %[[THREAD]], %{{.*}}
      // CHECK: %[[OWN:.*]] = llvm.add %[[GROUP]], %{{.*}}
      // CHECK: llvm.inline_asm {{.*}}"bar.sync $0, $1;", "r,r,~{memory}" %[[OWN]], %
      simt.take_turn of 3
      // CHECK: %[[NEXT:.*]] = llvm.urem
      // CHECK: %[[OTHER:.*]] = llvm.add %[[NEXT]], %{{.*}}
      // CHECK: llvm.inline_asm {{.*}}"bar.arrive $0, $1;", "r,r,~{memory}" %[[OTHER]], %
      simt.give_turn of 3
      // CHECK: "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3,~{memory}"
      %d = simt.wgmma_wait 0 takes %t3 : (!simt.accumulators<vector<4xf32>>) -> vector<4xf32>
      // CHECK: "wgmma.wait_group.sync.aligned 1;", "~{memory}"
      simt.wgmma_wait 1
      simt.store %d, %g[%i] align 16 : vector<4xf32>, !simt.ptr<global>
      gpu.return
    }

    // CHECK-LABEL: llvm.func @bits
    gpu.func @bits(%g: !simt.ptr<global>, %i: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      %a = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<4xi32>
      %f = simt.wgmma_fence of %a : vector<4xi32>
      // CHECK: wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, accumulate;
      // CHECK-SAME: "=r,=r,=r,=r,r,r,r,r,l,~{memory}"
      %t = simt.wgmma %f as ui1, %s[%i] as ui1 swizzle 128 leading 16 stride 1024
        : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xi32>>
      simt.wgmma_commit
      %d = simt.wgmma_wait 0 takes %t : (!simt.accumulators<vector<4xi32>>) -> vector<4xi32>
      simt.store %d, %g[%i] align 16 : vector<4xi32>, !simt.ptr<global>
      gpu.return
    }

    // Accumulators that begin with nothing are only written. 64-byte swizzle is 2, 32-byte swizzle 3.
    // CHECK-LABEL: llvm.func @packed
    gpu.func @packed(%g: !simt.ptr<global>, %i: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      %a = simt.load %g[%i] align 16 : !simt.ptr<global> -> vector<4xi32>
      // CHECK: llvm.mlir.constant(-2147483616 : i32)
      // CHECK: setp.ne.b32 accumulate, 0, 0;\0A\09wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, accumulate;
      // CHECK-SAME: "=r,=r,=r,=r,r,r,r,r,l,~{memory}"
      %t = simt.wgmma %a as si8, %s[%i] as ui8 swizzle 64 leading 16 stride 512
        : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xi32>>
      // CHECK: llvm.mlir.constant(524288 : i32)
      // CHECK: llvm.mlir.constant(-1073741808 : i32)
      // CHECK: m64n8k32.f32.e4m3.e5m2 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, accumulate, 1, 1;
      %u = simt.wgmma %a as f8E4M3FN, %s[%i] as f8E5M2 swizzle 32 leading 128 stride 256
        : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      gpu.return
    }
  }
}
