//===- LowlpGatherOps.td - accesses at indices read on the device -*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPGATHEROPS_TD
#define LOWLP_IR_LOWLPGATHEROPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_LoadScalarOp : Lowlp_Op<"load_scalar", [MemoryEffects<[MemRead]>]> {
  let summary = "a number read from memory, for loop bounds, offsets and conditions";
  let description = [{
    One element of a view of global memory or of a shared tile, as an `index` if it is an integer of 8, 16 or 32 bits,
    as an `f32` if it is `f16`, `bf16` or `f32`. So loop bounds, tile coordinates and conditions may be values that the
    device computed: work lists, page tables, the rows of an expert.

    Every thread of the block reads the same element, so the number is the same in all of them, and may decide about
    control flow, as long as nobody writes the element meanwhile: between a write by this block and the read stands
    `lowlp.synchronize`. The CPU target reports a race else.

    An element outside reads 0. `in_bounds` promises that there is none: the test is dropped, and the CPU target reports
    a broken promise.

    ```mlir
    %n = lowlp.load_scalar %lengths[%b] : !lowlp.global<?xsi32> -> index
    ```

    Lowers to `simt.load`.
  }];
  let arguments = (ins AnyTypeOf<[Lowlp_GlobalType, Lowlp_SharedType]>:$source, Variadic<Index>:$offsets,
      UnitAttr:$in_bounds);
  let results = (outs AnyTypeOf<[Index, F32]>:$value);
  let assemblyFormat = [{
    $source `[` $offsets `]` (`in_bounds` $in_bounds^)? attr-dict `:` type($source) `->` type($value)
  }];
  let hasVerifier = 1;
}

def Lowlp_GatherGlobalOp : Lowlp_Op<"gather_global", [MemoryEffects<[MemRead]>]> {
  let summary = "load a tile whose index along one dimension comes from a tile";
  let description = [{
    As `lowlp.load_global`, but along dimension `dim` of the tile the place in the view is what `indices` holds, instead
    of the place in the tile: with `dim 0`, element (i, j) comes from `[offset 0 + indices(i), offset 1 + j]`. So the
    rows of an expert, of a permutation, or of pages are loaded by one op.

    `indices` holds integers. Its shape is that of the tile, or 1 along dimensions on which the index does not depend,
    as for `lowlp.broadcast`; and as there, each thread must hold the indices that it needs. For a tile of layout `L`
    indexed by rows, `reduce(L, dims=[1], keep_dims=True)` is the layout of such a tile.

    Elements outside of the view are zero, so an index of -1 reads zeros. `in_bounds` promises that there are none: the
    test is dropped, and the CPU target reports a broken promise.

    ```mlir
    %t = lowlp.gather_global %v[%c0, %k] indices %rows dim 0 : !lowlp.global<?x64xf16>,
      !lowlp.tile<16x1xsi32, spatial(8, 1).reduce(spatial(1, 4), dims=[1], keep_dims=True).local(2, 1)>
      -> !lowlp.tile<16x8xf16, spatial(8, 4).local(2, 2)>
    ```

    Lowers to `simt.load`, as wide as `lowlp.load_global` where the index is the same for neighbours.
  }];
  let arguments = (ins Lowlp_GlobalType:$source, Variadic<Index>:$offsets, Lowlp_TileType:$indices, I64Attr:$dim,
      UnitAttr:$in_bounds);
  let results = (outs Lowlp_TileType:$tile);
  let assemblyFormat = [{
    $source `[` $offsets `]` `indices` $indices `dim` $dim (`in_bounds` $in_bounds^)? attr-dict
    `:` type($source) `,` type($indices) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def Lowlp_ScatterGlobalOp : Lowlp_Op<"scatter_global", [MemoryEffects<[MemWrite]>]> {
  let summary = "store a tile whose index along one dimension comes from a tile";
  let description = [{
    The mirror of `lowlp.gather_global`: elements outside of the view are not written, so an index of -1 writes nothing.
    No two elements may go to one place: which of them would stay is open, and the CPU target reports a race.

    ```mlir
    lowlp.scatter_global %t, %v[%c0, %n] indices %rows dim 0 : !lowlp.tile<...>, !lowlp.global<?x64xf16>,
      !lowlp.tile<...>
    ```

    Lowers to `simt.store`, or `simt.atomic_rmw` for elements narrower than 8 bits.
  }];
  let arguments = (ins Lowlp_TileType:$tile, Lowlp_GlobalType:$destination, Variadic<Index>:$offsets,
      Lowlp_TileType:$indices, I64Attr:$dim, UnitAttr:$in_bounds);
  let assemblyFormat = [{
    $tile `,` $destination `[` $offsets `]` `indices` $indices `dim` $dim (`in_bounds` $in_bounds^)? attr-dict
    `:` type($tile) `,` type($destination) `,` type($indices)
  }];
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPGATHEROPS_TD
