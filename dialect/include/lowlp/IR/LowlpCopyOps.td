//===- LowlpCopyOps.td - asynchronous copies ------------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPCOPYOPS_TD
#define LOWLP_IR_LOWLPCOPYOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_CopyAsyncOp : Lowlp_Op<"copy_async", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin to copy a part of a view to shared memory";
  let description = [{
    The block copies a part of the extents `shape`, which lies along the last dimensions of the view and of the shared
    tile, each of which has one offset for each dimension (Tilus, table 1: CopyAsync). What lies outside of the view
    arrives as zero; what would go outside of the shared tile does not go. `in_bounds` promises that all of the part
    lies in the view.

    The part has arrived after a `lowlp.copy_async_wait` that waits for its group and, for other threads than the one
    that copied, a `lowlp.synchronize`. Until then it must be neither read nor written.

    ```mlir
    lowlp.copy_async %a[%i, %k] to %s[%stage, %c0, %c0] shape [16, 256]
      : !lowlp.global<?x4096xf16> to !lowlp.shared<3x16x256xf16>
    lowlp.copy_async_commit
    lowlp.copy_async_wait 0
    lowlp.synchronize
    ```

    Lowers to `simt.copy_async` of 16, 8 or 4 bytes, where both layouts, strides, offsets and alignment allow one; else
    to loads and stores, which are done when the op is.
  }];
  let arguments = (ins Lowlp_GlobalType:$source, Variadic<Index>:$sourceOffsets, Lowlp_SharedType:$destination,
      Variadic<Index>:$destinationOffsets, DenseI64ArrayAttr:$shape, UnitAttr:$in_bounds);
  let assemblyFormat = [{
    $source `[` $sourceOffsets `]` `to` $destination `[` $destinationOffsets `]` `shape` $shape
    (`in_bounds` $in_bounds^)? attr-dict `:` type($source) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Lowlp_CopyAsyncCommitOp : Lowlp_Op<"copy_async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close a group of asynchronous copies";
  let description = [{
    All copies since the last commit are one group, an empty one if there are none (Tilus, table 1:
    CopyAsyncCommitGroup).

    ```mlir
    lowlp.copy_async_commit
    ```

    Lowers to `simt.copy_async_commit`.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_CopyAsyncWaitOp : Lowlp_Op<"copy_async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for groups of asynchronous copies";
  let description = [{
    Until all but the last `n` groups have arrived (Tilus, table 1: CopyAsyncWaitGroup).

    ```mlir
    lowlp.copy_async_wait 1
    ```

    Lowers to `simt.copy_async_wait`.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$n);
  let assemblyFormat = "$n attr-dict";
}

#endif // LOWLP_IR_LOWLPCOPYOPS_TD
