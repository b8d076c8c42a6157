//===- LowlpSharedOps.td - shared memory ----------------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPSHAREDOPS_TD
#define LOWLP_IR_LOWLPSHAREDOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_AllocSharedOp : Lowlp_Op<"alloc_shared"> {
  let summary = "a tile in the block's shared memory";
  let description = [{
    Every op is one place, wherever it stands, for as long as the block runs; what it holds at first is undefined
    (Tilus, table 1: AllocateShared). Elements narrower than 8 bits are packed without gaps, low bits first. All tiles
    of a kernel take at most 227 KiB together; an architecture may have less, which the launch checks.

    ```mlir
    %s = lowlp.alloc_shared : !lowlp.shared<3x16x256xf16, local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)>
    ```

    `offset` is the byte at which it begins, which `lowlp-plan-memory` chooses; `scratch` marks a tile that the compiler
    has made for itself, for which that pass also sets the barriers between one use and the next.

    Lowers to `simt.shared_memory`. A tile without an offset lies after all others. Tiles begin at multiples of 16
    bytes, or of what tensor copies into them and products of warpgroups demand; the attribute `lowlp.shared_bytes` of the kernel is what all of
    them take.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset, UnitAttr:$scratch);
  let results = (outs Res<Lowlp_SharedType, "", [MemAlloc]>:$shared);
  let extraClassDeclaration = [{
    /// The most bytes that a block of any architecture may have (CUDA C++ Programming Guide, "Technical Specifications
    /// per Compute Capability").
    static constexpr int64_t kMaxBytes = 227 * 1024;
    /// The widest access that there is.
    static constexpr int64_t kAlignBytes = 16;
    /// The multiple of bytes at which the tile begins: 16, or what tensor copies and `lowlp.wgmma` demand.
    int64_t getAlignBytes();
  }];
  let assemblyFormat = "(`at` $offset^)? (`scratch` $scratch^)? attr-dict `:` type($shared)";
  let hasVerifier = 1;
}

class Lowlp_SharedAccess<string mnemonic, list<Trait> traits = []> : Lowlp_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Lowlp_LoadSharedOp : Lowlp_SharedAccess<"load_shared", [MemoryEffects<[MemRead]>,
    Lowlp_LayoutTransferInterface]> {
  let summary = "load a tile from shared memory into registers";
  let description = [{
    One offset for each dimension of the shared tile; the register tile lies along its last dimensions (Tilus, table 1:
    LoadShared). So a dimension of stages is one more offset: `%s[%stage, %c0, %k]`. Elements outside of the shared
    tile are zero. `in_bounds` promises that there are none: the test is dropped, and the CPU target reports a broken
    promise.

    ```mlir
    %t = lowlp.load_shared %s[%stage, %c0, %k] : !lowlp.shared<3x16x256xf16>
      -> !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `simt.ldmatrix` where it can: where the register layout divides by `spatial(8, 4).local(1, e)`, `e` elements
    being 32 bits, in one order of two dimensions or the other, and rows of 16 bytes lie aligned and in one piece in
    shared memory (Tilus, appendix C). Rows along the other dimension than registers need elements of 16 bits. Else it
    lowers to `simt.load`, as wide as both layouts and the offsets allow, as it does where some of the tile lies outside.
  }];
  let arguments = (ins Lowlp_SharedType:$source, Variadic<Index>:$offsets, UnitAttr:$in_bounds);
  let results = (outs Lowlp_TileType:$tile);
  let assemblyFormat = [{
    $source `[` $offsets `]` (`in_bounds` $in_bounds^)? attr-dict `:` type($source) `->` type($tile)
  }];
}

def Lowlp_StoreSharedOp : Lowlp_SharedAccess<"store_shared", [MemoryEffects<[MemWrite]>]> {
  let summary = "store a tile from registers to shared memory";
  let description = [{
    The mirror of `lowlp.load_shared` (Tilus, table 1: StoreShared): elements outside of the shared tile are not
    written. Where several threads hold an element, the first of them writes it. Other threads see it after the next
    `lowlp.synchronize`.

    ```mlir
    lowlp.store_shared %t, %s[%stage, %c0, %k] : !lowlp.tile<...>, !lowlp.shared<3x16x256xf16>
    ```

    Lowers to `simt.stmatrix` from sm_90 on, where a load would be `simt.ldmatrix` and every element is held once; else to
    `simt.store`, or `simt.atomic_rmw` for elements that share their bytes with others.
  }];
  let arguments = (ins Lowlp_TileType:$tile, Lowlp_SharedType:$destination, Variadic<Index>:$offsets,
      UnitAttr:$in_bounds);
  let assemblyFormat = [{
    $tile `,` $destination `[` $offsets `]` (`in_bounds` $in_bounds^)? attr-dict
    `:` type($tile) `,` type($destination)
  }];
}

def Lowlp_SynchronizeOp : Lowlp_Op<"synchronize", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until all threads of the block are here";
  let description = [{
    What they wrote to shared and global memory before is visible to all of them after it (Tilus, table 1:
    Synchronize).

    ```mlir
    lowlp.synchronize
    ```

    Lowers to `gpu.barrier`.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_SynchronizeWarpgroupsOp : Lowlp_Op<"synchronize_warpgroups", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until all threads of the own warpgroup are here";
  let description = [{
    As `lowlp.synchronize`, among the 128 threads of each warpgroup: one does not wait for another, and is shown nothing
    of what another did. The block has whole warpgroups.

    ```mlir
    lowlp.synchronize_warpgroups
    ```

    Lowers to `simt.warpgroup_barrier`.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPSHAREDOPS_TD
