//===- LowlpBulkOps.td - bulk copies --------------------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPBULKOPS_TD
#define LOWLP_IR_LOWLPBULKOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_CopyBulkOp : Lowlp_Op<"copy_bulk", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin a bulk copy of a part of a view to shared memory";
  let description = [{
    Copies a part of the extents `shape`, which lies along the last dimensions of the view and of the shared tile, each
    of which has one offset for each dimension. All of it lies in both. Its rows, along the last dimension, are whole
    runs of bytes in both memories: the view's last stride is 1, the shared tile is not swizzled within a row, and each
    row begins at a multiple of 16 bytes and takes one. The CPU target checks what is not known.

    The mbarrier counts the bytes as they come: they are there after a `lowlp.mbarrier_wait` for the phase that is
    current now, which must have been told to expect them.

    ```mlir
    lowlp.mbarrier_expect_bytes %full[%stage] bytes 8192 : !lowlp.mbarriers<3>
    lowlp.copy_bulk %a[%i, %k] to %s[%stage, %c0, %c0] shape [16, 256] signals %full[%stage]
      : !lowlp.global<?x4096xf16> to !lowlp.shared<3x16x256xf16>, !lowlp.mbarriers<3>
    ```

    Lowers to a `simt.copy_bulk` a row, in the first thread (PTX ISA, `cp.async.bulk`).
  }];
  let arguments = (ins Lowlp_GlobalType:$source, Variadic<Index>:$sourceOffsets, Lowlp_SharedType:$destination,
      Variadic<Index>:$destinationOffsets, Lowlp_MbarriersType:$barriers, Index:$barrier, DenseI64ArrayAttr:$shape);
  let assemblyFormat = [{
    $source `[` $sourceOffsets `]` `to` $destination `[` $destinationOffsets `]` `shape` $shape
    `signals` $barriers `[` $barrier `]` attr-dict `:` type($source) `to` type($destination) `,` type($barriers)
  }];
  let hasVerifier = 1;
}

def Lowlp_CopyBulkToGlobalOp
    : Lowlp_Op<"copy_bulk_to_global", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin a bulk copy of a part of a shared tile to a view";
  let description = [{
    The mirror of `lowlp.copy_bulk`, with the same demands on the part. What was stored to the shared tile goes along if
    a `lowlp.fence_async` and a `lowlp.synchronize` lie in between. The shared tile may be written after a
    `lowlp.copy_bulk_wait` with `read` and a `lowlp.synchronize`.

    ```mlir
    lowlp.copy_bulk_to_global %s[%c0, %c0] to %y[%i, %j] shape [16, 256]
      : !lowlp.shared<16x256xf16> to !lowlp.global<?x4096xf16>
    lowlp.copy_bulk_commit
    lowlp.copy_bulk_wait 0 read
    ```

    Lowers to a `simt.copy_bulk_to_global` a row, in the first thread.
  }];
  let arguments = (ins Lowlp_SharedType:$source, Variadic<Index>:$sourceOffsets, Lowlp_GlobalType:$destination,
      Variadic<Index>:$destinationOffsets, DenseI64ArrayAttr:$shape);
  let assemblyFormat = [{
    $source `[` $sourceOffsets `]` `to` $destination `[` $destinationOffsets `]` `shape` $shape
    attr-dict `:` type($source) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Lowlp_CopyBulkCommitOp : Lowlp_Op<"copy_bulk_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close a group of bulk copies to global memory";
  let description = [{
    All since the last commit are one group.

    ```mlir
    lowlp.copy_bulk_commit
    ```

    Lowers to `simt.copy_bulk_commit`.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_CopyBulkWaitOp : Lowlp_Op<"copy_bulk_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for groups of bulk copies to global memory";
  let description = [{
    Until all but the last `n` groups have arrived or, with `read`, have read shared memory. The first thread waits,
    whose copies they are; the others know after a `lowlp.synchronize`.

    ```mlir
    lowlp.copy_bulk_wait 0 read
    ```

    Lowers to `simt.copy_bulk_wait`.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$n, UnitAttr:$read);
  let assemblyFormat = "$n (`read` $read^)? attr-dict";
}

def Lowlp_CopyTensorOp : Lowlp_Op<"copy_tensor", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin a tensor copy of a part of a view to shared memory";
  let description = [{
    Copies a part of the extents `shape`, which lies along the last dimensions of the view and of the shared tile. One
    instruction of one thread copies all of it, or each piece of a row where rows are longer than 256 elements; what lies outside of the view arrives as zero. The runtime makes a
    tensor map of the view for the launch, so:

    - the view, of 1 to 5 dimensions, is of a pointer that is a parameter aligned to 16 bytes; its extents and strides
      are affine functions of the parameters, the last stride is 1, the others multiples of 16 bytes; elements have 8,
      16 or 32 bits;
    - an extent of the part is at most 256, but for rows that divide into pieces or panels; its rows take a multiple of 16 bytes, and its last offset in the view is one
      of 16 bytes, positive or not;
    - the part is all of the shared tile but its first dimensions, and lies in it row by row, either without a swizzle
      or with the one of the hardware: rows of B = 32, 64 or 128 bytes and
      `swizzle(local(R, B / 16), dim=1, log_step=n).local(1, 16 / bytes of an element)` where n is 2, 1 or 0; or rows of
      P panels of 128 bytes, a multiple of 8 of them, and `local(1, P).swizzle(local(R, 8), dim=1)` in front, by one
      instruction for each panel.

    The mbarrier counts the bytes of the whole part.

    ```mlir
    lowlp.mbarrier_expect_bytes %full[%stage] bytes 2048 : !lowlp.mbarriers<3>
    lowlp.copy_tensor %a[%i, %k] to %s[%stage, %c0, %c0] shape [16, 64] signals %full[%stage]
      : !lowlp.global<?x4096xf16>
      to !lowlp.shared<3x16x64xf16, local(3, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)>, !lowlp.mbarriers<3>
    ```

    Lowers to `simt.copy_tensor` in the first thread (PTX ISA, `cp.async.bulk.tensor`); the attribute
    `lowlp.tensor_maps` of the kernel says which maps the runtime makes.
  }];
  let arguments = (ins Lowlp_GlobalType:$source, Variadic<Index>:$sourceOffsets, Lowlp_SharedType:$destination,
      Variadic<Index>:$destinationOffsets, Lowlp_MbarriersType:$barriers, Index:$barrier, DenseI64ArrayAttr:$shape);
  let assemblyFormat = [{
    $source `[` $sourceOffsets `]` `to` $destination `[` $destinationOffsets `]` `shape` $shape
    `signals` $barriers `[` $barrier `]` attr-dict `:` type($source) `to` type($destination) `,` type($barriers)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The bytes of a row's swizzle: 0, 32, 64 or 128.
    int64_t getSwizzleBytes();
    /// The multiple of bytes at which the shared tile begins.
    int64_t getAlignBytes() { return std::max<int64_t>(128, 8 * getSwizzleBytes()); }
    /// What one instruction copies, one extent for each of `shape`; none if there is no way to cut the part up.
    std::optional<::llvm::SmallVector<int64_t>> getBox();
  }];
}

#endif // LOWLP_IR_LOWLPBULKOPS_TD
