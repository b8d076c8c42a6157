//===- SimtCopyOps.td - asynchronous copies of one thread --*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTCOPYOPS_TD
#define LOWLP_IR_SIMTCOPYOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_CopyAsyncOp : Simt_Op<"copy_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin to copy bytes from global to shared memory";
  let description = [{
    4, 8 or 16 bytes, to which both addresses are aligned (PTX ISA, `cp.async`). They have arrived after a
    `simt.copy_async_wait` of this thread that waits for their group. The CPU target copies them there, and until then
    reports whoever reads or writes them, or writes what they are copied from.

    ```mlir
    simt.copy_async %p[%from] to %s[%to] bytes 16 : !simt.ptr<global> to !simt.ptr<shared>
    ```
  }];
  let arguments = (ins Simt_PtrType:$source, I64:$sourceOffset, Simt_PtrType:$destination, I64:$destinationOffset,
      I64Attr:$bytes);
  let assemblyFormat = [{
    $source `[` $sourceOffset `]` `to` $destination `[` $destinationOffset `]` `bytes` $bytes attr-dict
    `:` type($source) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Simt_CopyAsyncCommitOp : Simt_Op<"copy_async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close a group of this thread's asynchronous copies";
  let description = [{
    All since the last commit (PTX ISA, `cp.async.commit_group`).

    ```mlir
    simt.copy_async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_CopyAsyncWaitOp : Simt_Op<"copy_async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for groups of this thread's asynchronous copies";
  let description = [{
    Until all but the last `n` groups have arrived (PTX ISA, `cp.async.wait_group`).

    ```mlir
    simt.copy_async_wait 1
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$n);
  let assemblyFormat = "$n attr-dict";
}

#endif // LOWLP_IR_SIMTCOPYOPS_TD
