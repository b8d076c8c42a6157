//===- SimtBarrierOps.td - mbarriers and fences of proxies ------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTBARRIEROPS_TD
#define LOWLP_IR_SIMTBARRIEROPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_MbarrierInitOp : Simt_Op<"mbarrier_init", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "make an mbarrier of 8 bytes of shared memory";
  let description = [{
    An mbarrier counts arrivals in phases: a phase is complete when `arrivals` arrivals have come, and all bytes that
    were announced for it; then the next one begins (PTX ISA, `mbarrier.init.shared.b64`). The address is a multiple of
    8. Other threads may use it after a barrier of the block, and bulk copies after a `simt.fence_mbarrier_init`. With
    `by_warps`, `arrivals` counts warps, all of whose lanes arrive together.

    ```mlir
    simt.mbarrier_init %s[%offset] arrivals 128 : !simt.ptr<shared>
    ```
  }];
  let arguments = (ins Simt_PtrType:$base, I64:$offset, I64Attr:$arrivals, UnitAttr:$by_warps);
  let assemblyFormat = "$base `[` $offset `]` `arrivals` $arrivals (`by_warps` $by_warps^)? attr-dict `:` type($base)";
  let hasVerifier = 1;
}

def Simt_FenceMbarrierInitOp : Simt_Op<"fence_mbarrier_init", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "show this thread's new mbarriers to bulk copies";
  let description = [{
    PTX ISA, `fence.mbarrier_init.release.cluster`.

    ```mlir
    simt.fence_mbarrier_init
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_MbarrierArriveOp : Simt_Op<"mbarrier_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "arrive at an mbarrier, and announce bytes";
  let description = [{
    One arrival for the current phase, which releases what this thread did before to all that wait for the phase. With
    `expects`, the phase is complete only when bulk copies have brought as many bytes more (PTX ISA,
    `mbarrier.arrive.expect_tx`). It does not wait. With `by_warp` the lanes of the warp come together, and arrive as one,
    at an mbarrier that counts warps (PTX ISA, `bar.warp.sync`); `loads_ended` says that no load of any lane is in flight,
    and they need not wait for these.

    ```mlir
    simt.mbarrier_arrive %s[%offset] : !simt.ptr<shared>
    simt.mbarrier_arrive %s[%offset] expects 4096 : !simt.ptr<shared>
    simt.mbarrier_arrive %s[%offset] by_warp loads_ended : !simt.ptr<shared>
    ```
  }];
  let arguments = (ins Simt_PtrType:$base, I64:$offset, OptionalAttr<I64Attr>:$bytes, UnitAttr:$by_warp,
                   UnitAttr:$loads_ended);
  let assemblyFormat = [{
    $base `[` $offset `]` (`expects` $bytes^)? (`by_warp` $by_warp^)? (`loads_ended` $loads_ended^)? attr-dict `:`
    type($base)
  }];
  let hasVerifier = 1;
}

def Simt_MbarrierWaitOp : Simt_Op<"mbarrier_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for a phase of an mbarrier";
  let description = [{
    Until the phase of this parity is complete: the current one if its number, counted from 0, is even and `parity` is 0
    or both are 1, else the one before it, which is complete. What was released to that phase, and the bytes that bulk
    copies brought for it, are then visible to this thread (PTX ISA, `mbarrier.try_wait.parity`, in a loop).

    ```mlir
    simt.mbarrier_wait %s[%offset] parity %parity : !simt.ptr<shared>
    ```
  }];
  let arguments = (ins Simt_PtrType:$base, I64:$offset, I32:$parity);
  let assemblyFormat = "$base `[` $offset `]` `parity` $parity attr-dict `:` type($base)";
  let hasVerifier = 1;
}

def Simt_FenceAsyncOp : Simt_Op<"fence_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "order loads and stores before bulk copies";
  let description = [{
    Bulk copies reach memory by another way than loads and stores do, the async proxy. Between a load or store and a
    later bulk copy of the same shared memory lies this fence, in a thread that is ordered after the one and before the
    other (PTX ISA, `fence.proxy.async`). The bytes that a bulk copy brought need no fence.

    ```mlir
    simt.fence_async
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LOWLP_IR_SIMTBARRIEROPS_TD
