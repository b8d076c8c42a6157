//===- LowlpBarrierOps.td - mbarriers -------------------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPBARRIEROPS_TD
#define LOWLP_IR_LOWLPBARRIEROPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_AllocMbarriersOp : Lowlp_Op<"alloc_mbarriers"> {
  let summary = "mbarriers in the block's shared memory";
  let description = [{
    An mbarrier counts arrivals in phases: a phase is complete when `arrivals` arrivals have come, and all bytes that
    were announced for it; then the next one begins. So a block hands stages of shared memory to and fro: bulk copies
    complete the phases of one mbarrier (full), and the threads that have read it those of another (empty). The mbarriers
    exist for as long as the block runs; the block uses them after the next `lowlp.synchronize`. The op stands in the
    body of the kernel itself. With `by_warps` all arrivals are those of whole warps.

    ```mlir
    %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
    %empty = lowlp.alloc_mbarriers arrivals 128 : !lowlp.mbarriers<3>
    lowlp.synchronize
    ```

    Lowers to `simt.shared_memory` and, in the first thread, `simt.mbarrier_init` and `simt.fence_mbarrier_init` (PTX
    ISA, "mbarrier"). Each takes 8 bytes of shared memory.
  }];
  let arguments = (ins I64Attr:$arrivals, UnitAttr:$by_warps);
  let results = (outs Res<Lowlp_MbarriersType, "", [MemAlloc]>:$barriers);
  let assemblyFormat = "`arrivals` $arrivals (`by_warps` $by_warps^)? attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Lowlp_MbarrierArriveOp : Lowlp_Op<"mbarrier_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "every thread of the block arrives at an mbarrier";
  let description = [{
    As many arrivals as the block has threads, or as it has warps for mbarriers `by_warps`. What a thread did before is
    done for all that wait for the phase. It does not wait, but for the other lanes of its warp, and for what its threads
    load; `loads_ended` says that of these loads none is in flight, since what they loaded has been used
    (`lowlp-use-warpgroups`).

    ```mlir
    lowlp.mbarrier_arrive %empty[%stage] : !lowlp.mbarriers<3>
    lowlp.mbarrier_arrive %empty[%stage] loads_ended : !lowlp.mbarriers<3>
    ```

    Lowers to `simt.mbarrier_arrive`.
  }];
  let arguments = (ins Lowlp_MbarriersType:$barriers, Index:$index, UnitAttr:$loads_ended);
  let assemblyFormat = "$barriers `[` $index `]` (`loads_ended` $loads_ended^)? attr-dict `:` type($barriers)";
}

def Lowlp_MbarrierExpectBytesOp : Lowlp_Op<"mbarrier_expect_bytes", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "arrive once at an mbarrier and announce bytes";
  let description = [{
    One arrival, of the first thread; the phase is complete only when bulk copies have brought `bytes` bytes more.

    ```mlir
    lowlp.mbarrier_expect_bytes %full[%stage] bytes 4096 : !lowlp.mbarriers<3>
    ```

    Lowers to `simt.mbarrier_arrive` with `expects`, in the first thread (PTX ISA, `mbarrier.arrive.expect_tx`).
  }];
  let arguments = (ins Lowlp_MbarriersType:$barriers, Index:$index, I64Attr:$bytes);
  let assemblyFormat = "$barriers `[` $index `]` `bytes` $bytes attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Lowlp_MbarrierWaitOp : Lowlp_Op<"mbarrier_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "every thread waits for a phase of an mbarrier";
  let description = [{
    Until the phase is complete whose number, counted from 0, has the parity of `parity`, of which only the lowest bit
    counts: the current phase, or else the one before it, which is complete. So a wait with parity 1 at an mbarrier that
    nobody has arrived at returns at once.

    ```mlir
    lowlp.mbarrier_wait %full[%stage] parity %round : !lowlp.mbarriers<3>
    ```

    Lowers to `simt.mbarrier_wait` (PTX ISA, `mbarrier.try_wait.parity`).
  }];
  let arguments = (ins Lowlp_MbarriersType:$barriers, Index:$index, Index:$parity);
  let assemblyFormat = "$barriers `[` $index `]` `parity` $parity attr-dict `:` type($barriers)";
}

def Lowlp_FenceAsyncOp : Lowlp_Op<"fence_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "order loads and stores before bulk copies";
  let description = [{
    Every thread orders its loads and stores of shared memory before the bulk copies that are ordered after this op.
    Bulk copies reach memory by another way than loads and stores do (PTX ISA, "Async proxy").

    ```mlir
    lowlp.store_shared %t, %s[%c0, %c0] : !lowlp.tile<...>, !lowlp.shared<16x256xf16>
    lowlp.fence_async
    lowlp.synchronize
    lowlp.copy_bulk_to_global %s[%c0, %c0] to %y[%i, %j] shape [16, 256] ...
    ```

    Lowers to `simt.fence_async`.
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LOWLP_IR_LOWLPBARRIEROPS_TD
