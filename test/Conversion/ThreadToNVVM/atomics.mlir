// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --split-input-file | FileCheck %s

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @atomics
    gpu.func @atomics(%p: !simt.ptr<global>, %s: !simt.ptr<shared>, %v: i32, %f: f32, %h: f16, %b: vector<2xbf16>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = arith.constant 16 : i64
      // CHECK: llvm.atomicrmw _xor {{.*}} syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1>, i32
      %0 = simt.atomic_rmw xor %v, %p[%i] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw min {{.*}} : !llvm.ptr<3>, i32
      %1 = simt.atomic_rmw min_s %v, %s[%i] : i32, !simt.ptr<shared>
      // CHECK: llvm.atomicrmw max
      %2 = simt.atomic_rmw max_s %v, %p[%i] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw umin
      %3 = simt.atomic_rmw min_u %v, %p[%i] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw umax
      %4 = simt.atomic_rmw max_u %v, %p[%i] : i32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw fadd {{.*}} {alignment = 4 : i64} : !llvm.ptr<1>, f32
      %5 = simt.atomic_rmw add %f, %p[%i] : f32, !simt.ptr<global>
      // CHECK: llvm.atomicrmw fadd {{.*}} {alignment = 2 : i64} : !llvm.ptr<1>, f16
      %6 = simt.atomic_rmw add %h, %p[%i] : f16, !simt.ptr<global>
      // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "atom.relaxed.gpu.global.add.noftz.bf16x2 $0, [$1], $2;"
      %7 = simt.atomic_rmw add %b, %p[%i] : vector<2xbf16>, !simt.ptr<global>
      // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "atom.relaxed.gpu.shared.add.noftz.bf16x2 $0, [$1], $2;"
      %8 = simt.atomic_rmw add %b, %s[%i] : vector<2xbf16>, !simt.ptr<shared>
      // CHECK: %[[PAIR:.*]] = llvm.cmpxchg {{.*}} syncscope("device") monotonic monotonic {alignment = 4 : i64} : !llvm.ptr<1>, i32
      // CHECK: llvm.extractvalue %[[PAIR]][0]
      %9 = simt.atomic_cas %v, %0, %p[%i] : !simt.ptr<global>
      gpu.return
    }
  }
}

// -----

// A wait is a loop around one load.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @order
    gpu.func @order(%p: !simt.ptr<global>, %v: i32, %c: i1) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %i = arith.constant 16 : i64
      // CHECK: %[[Q:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      %q = simt.offset %p[%i] : !simt.ptr<global>
      // CHECK: llvm.cond_br
      scf.if %c {
        // CHECK: %[[AT:.*]] = llvm.getelementptr %[[Q]]
        // CHECK: llvm.br ^[[WAIT:.*]]
        // CHECK: ^[[WAIT]]:
        // CHECK: %[[WORD:.*]] = llvm.load %[[AT]] atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
        // CHECK: %[[IS:.*]] = llvm.icmp "eq" %[[WORD]], %{{.*}} : i32
        // CHECK: llvm.cond_br %[[IS]], ^[[BEHIND:.*]], ^[[WAIT]]
        // CHECK: ^[[BEHIND]]:
        simt.acquire %v, %q[%i] : !simt.ptr<global>
      }
      // CHECK: llvm.store %{{.*}}, %{{.*}} atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
      simt.release store %v, %q[%i] : !simt.ptr<global>
      // CHECK: llvm.inline_asm has_side_effects {{.*}}"red.release.gpu.global.add.u32 [$0], $1;", "l,r,~{memory}"
      simt.release add %v, %q[%i] : !simt.ptr<global>
      gpu.return
    }
  }
}
