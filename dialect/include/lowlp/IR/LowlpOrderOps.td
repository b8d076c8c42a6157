//===- LowlpOrderOps.td - what blocks of a launch share -------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPORDEROPS_TD
#define LOWLP_IR_LOWLPORDEROPS_TD

include "lowlp/IR/LowlpEnums.td"
include "lowlp/IR/LowlpKernelOps.td"

class Lowlp_SemaphoreOp<string mnemonic> : Lowlp_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
}

def Lowlp_SemaphoreAcquireOp : Lowlp_SemaphoreOp<"semaphore_acquire"> {
  let summary = "wait until a word of global memory has a value";
  let description = [{
    The block waits until the element of a view of si32 is `value`, of which the low 32 bits count (Tilus, LockSemaphore).
    After it all threads of the block see what other blocks did before the `lowlp.semaphore_release` that wrote the
    value. A block may wait for blocks of lower index: those of a higher one may not have started.

    ```mlir
    lowlp.semaphore_acquire %v[%i], %value : !lowlp.global<?xsi32>
    ```

    Lowers to `simt.acquire` by the first thread, and `gpu.barrier`.
  }];
  let arguments = (ins Lowlp_GlobalType:$view, Variadic<Index>:$offsets, Index:$value);
  let assemblyFormat = "$view `[` $offsets `]` `,` $value attr-dict `:` type($view)";
}

def Lowlp_SemaphoreReleaseOp : Lowlp_SemaphoreOp<"semaphore_release"> {
  let summary = "give a word of global memory a value for other blocks to wait for";
  let description = [{
    Stores the low 32 bits of `value` to the element of a view of si32, or with `add` adds them to it (Tilus,
    ReleaseSemaphore). A block whose `lowlp.semaphore_acquire` reads that sees what all threads of this block did before.

    ```mlir
    lowlp.semaphore_release %v[%i], %value : !lowlp.global<?xsi32>
    ```

    Lowers to `gpu.barrier`, and `simt.release` by the first thread.
  }];
  let arguments = (ins Lowlp_GlobalType:$view, Variadic<Index>:$offsets, Index:$value, UnitAttr:$add);
  let assemblyFormat = "(`add` $add^)? $view `[` $offsets `]` `,` $value attr-dict `:` type($view)";
}

def Lowlp_AtomicRMWOp : Lowlp_Op<"atomic_rmw", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "combine a tile with memory, each element in one step";
  let description = [{
    One offset for each dimension of the view or shared tile; the tile lies along the last ones. An element in memory
    becomes `kind`(itself, the tile's element): `add`, `min`, `max`, `and`, `or`, `xor` or `exchange` of si32 and ui32,
    `add` of f32, f16 and bf16. Elements outside are not touched. Where several threads hold an element, the first of
    them does it. The result, if there is one, is what was there before, and zero outside; its layout then holds each
    element once. Threads and blocks may come to an element in any order, so sums of floats may differ from run to run;
    nothing is ordered by it.

    ```mlir
    lowlp.atomic_rmw add %t, %v[%i, %j] : !lowlp.tile<...>, !lowlp.global<?x4096xf32>
    %old = lowlp.atomic_rmw max %t, %s[%c0] : !lowlp.tile<...>, !lowlp.shared<64xsi32> -> !lowlp.tile<...>
    ```

    Lowers to `simt.atomic_rmw`, on pairs of f16 or bf16 where layout and alignment allow.
  }];
  let arguments = (ins Lowlp_AtomicKind:$kind, Lowlp_TileType:$tile,
      AnyTypeOf<[Lowlp_GlobalType, Lowlp_SharedType]>:$destination, Variadic<Index>:$offsets);
  let results = (outs Optional<Lowlp_TileType>:$old);
  let assemblyFormat = [{
    $kind $tile `,` $destination `[` $offsets `]` attr-dict `:` type($tile) `,` type($destination) (`->` type($old)^)?
  }];
  let hasVerifier = 1;
}

def Lowlp_WaitForDependenciesOp : Lowlp_Op<"wait_for_dependencies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for the launch before this one";
  let description = [{
    A kernel with this op may be launched before the one in front of it on the stream has ended (CUDA C++ Programming
    Guide, "Programmatic Dependent Launch"). What that one may have written is read, and what it may read is written,
    after the op alone; before it stand accesses to parameters that carry `lowlp.constant`, the promise that no launch just
    before writes them. It stands in the body of the kernel itself.

    ```mlir
    lowlp.wait_for_dependencies
    ```

    Lowers to `simt.wait_for_dependencies`; the attribute `lowlp.dependent_launch` of the kernel tells the launch.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_LaunchDependentsOp : Lowlp_Op<"launch_dependents", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let the launch after this one begin";
  let description = [{
    The next kernel on the stream may start when all blocks have come here or ended, if it waits for dependencies.

    ```mlir
    lowlp.launch_dependents
    ```

    Lowers to `simt.launch_dependents`.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_AllocGlobalOp : Lowlp_Op<"alloc_global"> {
  let summary = "memory that all blocks of a launch share";
  let description = [{
    The same memory for every block, for as long as the launch runs (Tilus, AllocateGlobal). `shape` maps the kernel's
    integer parameters, in their order, to the extents of a row-major tensor. What it holds at first is undefined; with
    `zeroed` it is zero, and the kernel must leave it zero at its end, so that no launch has to clear it. Every op is
    one place, wherever it stands.

    ```mlir
    %p = lowlp.alloc_global shape affine_map<(m) -> (m ceildiv 16, 128)> zeroed : !lowlp.ptr<si32>
    %v = lowlp.view_global %p shape [%tiles, 128] : !lowlp.ptr<si32> -> !lowlp.global<?x128xsi32>
    ```

    Lowers to `simt.offset` from a pointer behind the kernel's parameters. From there on lie those that are not zeroed,
    and towards lower addresses those that are, each at a multiple of 256 bytes. The kernel's attribute
    `lowlp.workspace` lists them for the launch, which provides the memory.
  }];
  let arguments = (ins AffineMapAttr:$shape, UnitAttr:$zeroed);
  let results = (outs Res<Lowlp_PtrType, "", [MemAlloc]>:$pointer);
  let assemblyFormat = "`shape` $shape (`zeroed` $zeroed^)? attr-dict `:` type($pointer)";
  let hasVerifier = 1;
}

def Lowlp_ExchangeInClusterOp : Lowlp_Op<"exchange_in_cluster", [
    MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["parts", "result"]>]> {
  let summary = "give each block of the cluster its part of a tile";
  let description = [{
    The first dimension counts the blocks of the cluster: block r gives part s to block s, and its result has at s what
    block s gave to r. All blocks of the cluster come here, all threads of each, once: it does not lie in a loop. Every thread
    holds all parts, one after the other; a part fills whole words of 32 bits.

    With a sum over the first dimension, each block has its part of the sum of all blocks, in the order of the blocks:

    ```mlir
    %parts = lowlp.exchange_in_cluster %t : !lowlp.tile<2x64x8xf32, local(2, 1, 1).spatial(1, 64, 1).local(1, 1, 8)>
    %sum = lowlp.reduce sum %parts dim 0 : ...
    ```

    Lowers to `simt.store_async` into the shared memory of the other blocks, after a `simt.cluster_barrier`, and a
    `simt.mbarrier_wait`. `shared` is the memory for them and the mbarrier, which `lowlp-expand-exchanges` provides. For targets
    without clusters `lowlp-expand-clusters` makes stores to global memory and semaphores of it.
  }];
  let arguments = (ins Lowlp_TileType:$parts, Optional<Lowlp_SharedType>:$shared);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$parts (`through` $shared^)? attr-dict `:` type($parts) (`through` type($shared)^)?";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Words of 32 bits that a thread holds of a part.
    int64_t getWordsOfPart();
    /// Words of all parts but its own, of all threads.
    int64_t getTakenWords();
    /// What `shared` is: those words, and 4 for an mbarrier.
    SharedType getNeededShared();
  }];
}

#endif // LOWLP_IR_LOWLPORDEROPS_TD
