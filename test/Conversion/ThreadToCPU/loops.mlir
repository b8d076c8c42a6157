// RUN: lowlp-opt --lowlp-convert-thread-to-cpu %s | FileCheck %s

gpu.module @kernels {
  // A choice within a loop: the loop's body, which has become several blocks, begins again with the number chosen.
  // CHECK-LABEL: llvm.func @choose(
  // CHECK: llvm.br ^[[LOOP:bb[0-9]+]](%{{.*}} : i64)
  // CHECK: ^[[LOOP]](%[[M:.*]]: i64):
  // CHECK: llvm.cond_br
  // CHECK: llvm.br ^[[JOIN:bb[0-9]+]](%{{.*}} : i64)
  // CHECK: llvm.br ^[[JOIN]](%{{.*}} : i64)
  // CHECK: ^[[JOIN]](%[[NEXT:.*]]: i64):
  // CHECK: llvm.call @lowlpCpuPoll
  // CHECK-NEXT: llvm.br ^[[LOOP]](%[[NEXT]] : i64)
  gpu.func @choose(%m: i64, %p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %one = arith.constant 1 : i64
    %last = scf.while (%a = %m) : (i64) -> i64 {
      %goes = arith.cmpi ne, %a, %one : i64
      scf.condition(%goes) %a : i64
    } do {
    ^bb0(%a: i64):
      %isLess = arith.cmpi slt, %a, %one : i64
      %next = scf.if %isLess -> i64 {
        %more = arith.addi %a, %one : i64
        scf.yield %more : i64
      } else {
        %less = arith.subi %a, %one : i64
        scf.yield %less : i64
      }
      scf.yield %next : i64
    }
    simt.store %last, %p[%m] align 8 : i64, <global>
    gpu.return
  }
}
