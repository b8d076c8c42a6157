//===- SimtBulkOps.td - bulk copies -----------------------------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTBULKOPS_TD
#define LOWLP_IR_SIMTBULKOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_TensorMapType : TypeDef<SimtDialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "how a tensor lies in global memory, as a tensor copy reads it";
  let description = [{
    A parameter of a kernel that the runtime makes (CUDA driver API, `CUtensorMap`). Example: `!simt.tensor_map`.
  }];
}

def Simt_CopyBulkOp : Simt_Op<"copy_bulk", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin to copy a run of bytes from global to shared memory";
  let description = [{
    Both addresses and `bytes` are multiples of 16. An mbarrier counts the bytes as they come: they are there after a
    `simt.mbarrier_wait` for its phase that is current now (PTX ISA,
    `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes`). One thread copies.

    ```mlir
    simt.copy_bulk %g[%from] to %s[%to] bytes 4096 signals %s[%barrier]
      : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
    ```
  }];
  let arguments = (ins Simt_PtrType:$source, I64:$sourceOffset, Simt_PtrType:$destination, I64:$destinationOffset,
      Simt_PtrType:$barrier, I64:$barrierOffset, I64Attr:$bytes);
  let assemblyFormat = [{
    $source `[` $sourceOffset `]` `to` $destination `[` $destinationOffset `]` `bytes` $bytes
    `signals` $barrier `[` $barrierOffset `]` attr-dict
    `:` type($source) `to` type($destination) `,` type($barrier)
  }];
  let hasVerifier = 1;
}

def Simt_CopyBulkToGlobalOp : Simt_Op<"copy_bulk_to_global", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin to copy a run of bytes from shared to global memory";
  let description = [{
    Both addresses and `bytes` are multiples of 16. The copy belongs to the next group that this thread commits (PTX
    ISA, `cp.async.bulk.global.shared::cta.bulk_group`).

    ```mlir
    simt.copy_bulk_to_global %s[%from] to %g[%to] bytes 4096 : !simt.ptr<shared> to !simt.ptr<global>
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

def Simt_CopyBulkCommitOp : Simt_Op<"copy_bulk_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close a group of this thread's bulk copies to global memory";
  let description = [{
    All since the last commit (PTX ISA, `cp.async.bulk.commit_group`).

    ```mlir
    simt.copy_bulk_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_CopyBulkWaitOp : Simt_Op<"copy_bulk_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for groups of this thread's bulk copies to global memory";
  let description = [{
    Until all but the last `n` groups have arrived or, with `read`, have read shared memory, which may then be written
    (PTX ISA, `cp.async.bulk.wait_group`).

    ```mlir
    simt.copy_bulk_wait 0
    simt.copy_bulk_wait 1 read
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$n, UnitAttr:$read);
  let assemblyFormat = "$n (`read` $read^)? attr-dict";
}

def Simt_CopyTensorOp : Simt_Op<"copy_tensor", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin to copy a box of a tensor from global to shared memory";
  let description = [{
    The box `box` of the tensor at `source` begins at the element `offsets`, one for each dimension of the tensor, the
    innermost last. `extents` counts elements, `strides` bytes: one for each dimension but the innermost, whose elements
    are neighbours. The map says the same to a GPU (PTX ISA,
    `cp.async.bulk.tensor.Nd.shared::cluster.global.tile.mbarrier::complete_tx::bytes`); the CPU target reads the
    operands. Elements outside of the tensor arrive as zero. The box lies row-major in shared memory, from a multiple of
    128 bytes on; with a `swizzle` of 32, 64 or 128 bytes, which is as long as a row of the box, chunk j of 16 bytes of
    row i lies where chunk `j xor (i * swizzle / 128) mod (swizzle / 16)` would, and the box begins at a multiple of 8
    such rows. The mbarrier counts the bytes of the whole box as they come.

    ```mlir
    simt.copy_tensor %map of %g extents [%m, %k] strides [%pitch] at [%i, %j] to %s[%to] box [64, 64]
      element_bytes 2 swizzle 128 signals %s[%barrier]
      : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
    ```
  }];
  let arguments = (ins Simt_TensorMapType:$map, Simt_PtrType:$source, Variadic<I64>:$extents, Variadic<I64>:$strides,
      Variadic<I64>:$offsets, Simt_PtrType:$destination, I64:$destinationOffset, Simt_PtrType:$barrier,
      I64:$barrierOffset, DenseI64ArrayAttr:$box, I64Attr:$elementBytes, I64Attr:$swizzle);
  let assemblyFormat = [{
    $map `of` $source `extents` `[` $extents `]` `strides` `[` $strides `]` `at` `[` $offsets `]`
    `to` $destination `[` $destinationOffset `]` `box` $box `element_bytes` $elementBytes `swizzle` $swizzle
    `signals` $barrier `[` $barrierOffset `]` attr-dict
    `:` type($source) `to` type($destination) `,` type($barrier)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The bytes of the whole box, which the mbarrier counts.
    int64_t getBytes();
  }];
}

#endif // LOWLP_IR_SIMTBULKOPS_TD
