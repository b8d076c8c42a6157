//===- LowlpWgmmaOps.td - products of warpgroups ----------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPWGMMAOPS_TD
#define LOWLP_IR_LOWLPWGMMAOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_WgmmaOp : Lowlp_Op<"wgmma", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin the product of a tile in registers and one in shared memory";
  let description = [{
    `d = a * b^T + c` with `a` [M, K] in registers, `b` [N, K] the part of a shared tile that begins at `offsets`, along
    its last two dimensions, and `c`, `d` [M, N]; without `plus`, c is zero. The instruction of 64 x N x K' multiplies on
    its own while the block goes on (PTX ISA, `wgmma.mma_async`; sm_90a only):

    | Elements of a and b             | Accumulators | K'  | N                                  |
    |---------------------------------|--------------|-----|------------------------------------|
    | both `f16`, or both `bf16`      | `f32`        | 16  | multiples of 8 to 256              |
    | `f8E4M3FN` or `f8E5M2`, each    | `f32`        | 32  | multiples of 8 to 256              |
    | `si8` or `ui8`, each            | `si32`       | 32  | 8, 24, and multiples of 16 to 256  |
    | `ui1`, and bits in `ui32`       | `si32`       | 256 | 8, 24, and multiples of 16 to 256  |

    Of single bits, whose product is the bitwise and, `b` is a tile [N, K / 32] of `ui32`, each of which is 32 bits of K,
    low ones first; its offsets count words.

    **Registers.** A warpgroup is four warps, from a multiple of four on, and has 64 rows; K is a multiple of K'. Each
    warp holds all columns of 16 rows, in registers of the fragments that `lowlp.dot` takes too, which with `e` elements
    in 32 bits are

    ```
    a: spatial(8, 4).local(1, e)           fragment: column_local(2, 2).spatial(8, 4).local(1, e)
    c: spatial(8, 4).local(1, 2)           fragment: local(2, 1).spatial(8, 4).local(1, 2)
    ```

    in any order, at one place in all warps: such as `spatial(W, 1).local(1, K / K').column_local(2, 2).spatial(8, 4)
    .local(1, e)` and `spatial(W, 1).local(1, N / 8).local(2, 1).spatial(8, 4).local(1, 2)` of W warps.

    **Shared memory.** The hardware knows `b` in four layouts, K innermost (PTX ISA, "Shared Memory Matrix Layout"). For
    rows of B bytes, and `v` elements in 16 bytes,

    ```
    128-byte swizzle   local(1, B / 128).swizzle(local(N, 8), dim=1).local(1, v)
    64-byte swizzle    local(1, B / 64).swizzle(local(N, 4), dim=1, log_step=1).local(1, v)
    32-byte swizzle    local(1, B / 32).swizzle(local(N, 2), dim=1, log_step=2).local(1, v)
    none               local(N / 8, B / 16).local(8, v)
    ```

    with stages in front, and rows in groups of 8 that may lie anywhere at equal distances. A tile with a swizzle of S
    bytes begins at a multiple of 8 S. The part begins at a multiple of 8 rows and of 32 bytes of K, and lies in the tile;
    the CPU target checks offsets that are not known.

    **Slices.** As in `lowlp.dot`, where the accumulators have S times the rows of `a`, K is cut into S equal slices, and
    rows s M to (s + 1) M are the product of slice s alone, whose part of `b` lies s further along the third last dimension
    of the shared tile. The warpgroups of a slice follow each other.

    **Order.** `d` cannot be read before `lowlp.wgmma_wait` gives it back as a tile, and has one use. Until the wait for
    its group nobody may write to the part of `b`. What the block stored there comes before the product if a
    `lowlp.fence_async` and a `lowlp.synchronize` lie in between, in this order; so for `lowlp.copy_async`, after its
    wait; bulk and tensor copies need their `lowlp.mbarrier_wait` only. The values `a` and `c` cannot change, but a loop
    writes the registers of `a` again: it must wait for a product before it comes to the same op again. With several
    groups in flight it is unrolled, so that registers take turns. The CPU target multiplies at the wait, and reports
    whoever comes too early.

    ```mlir
    %s = lowlp.wgmma %a, %b[%stage, %c0, %c0] : !lowlp.tile<64x64xf16, ...>,
      !lowlp.shared<3x16x64xf16, local(3, 1, 1).swizzle(local(16, 8), dim=1).local(1, 8)> -> !lowlp.accumulators<64x16xf32, ...>
    lowlp.wgmma_commit
    %d = lowlp.wgmma_wait 0 takes %s : (!lowlp.accumulators<64x16xf32, ...>) -> !lowlp.tile<64x16xf32, ...>
    ```

    Lowers to a `simt.wgmma_fence` of `a`, and of `c` where it is a tile, and a `simt.wgmma` for each K', in increasing
    order of K.
  }];
  let arguments = (ins Lowlp_TileType:$a, Lowlp_SharedType:$b, Variadic<Index>:$offsets,
      Optional<AnyTypeOf<[Lowlp_TileType, Lowlp_AccumulatorsType]>>:$c);
  let results = (outs Lowlp_AccumulatorsType:$result);
  let assemblyFormat = [{
    $a `,` $b `[` $offsets `]` (`plus` $c^ `:` type($c))? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The extent K' of the instruction, 32 bytes.
    int64_t getInstructionK();
    /// Elements of `a` that an element of `b` holds: 1, or 32 of bits.
    int64_t getElementsPerWord();
    /// How many slices K is cut into; 1 for a whole product.
    int64_t getNumSlices() { return getType().getLayout().shape()[0] / getA().getType().getShape()[0]; }
    /// K of a slice.
    int64_t getSliceK() { return getA().getType().getShape()[1] / getNumSlices(); }
    /// The same extent in elements of `b`.
    int64_t getStepOfB() { return getInstructionK() / getElementsPerWord(); }
    /// How `b` lies in shared memory. Requires: the op is valid.
    WgmmaTile getTileOfB();
    /// The multiple of bytes at which the shared tile begins.
    int64_t getAlignBytes() { return getTileOfB().alignBytes(); }
  }];
}

def Lowlp_WgmmaCommitOp : Lowlp_Op<"wgmma_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close a group of products of warpgroups";
  let description = [{
    All since the last commit are one group.

    ```mlir
    lowlp.wgmma_commit
    ```

    Lowers to `simt.wgmma_commit`.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_WgmmaWaitOp : Lowlp_Op<"wgmma_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for groups of products, and take their accumulators";
  let description = [{
    Until all but the last `n` groups are complete. The accumulators become tiles; they must be those of complete groups, which
    the CPU target checks. The shared tiles of complete groups may be written after a `lowlp.synchronize`, as other
    warps may be late.

    ```mlir
    %d = lowlp.wgmma_wait 1 takes %s : (!lowlp.accumulators<64x16xf32, ...>) -> !lowlp.tile<64x16xf32, ...>
    ```

    Lowers to `simt.wgmma_wait`.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$n, Variadic<Lowlp_AccumulatorsType>:$pending);
  let results = (outs Variadic<Lowlp_TileType>:$tiles);
  let assemblyFormat = "$n (`takes` $pending^ `:` functional-type($pending, $tiles))? attr-dict";
  let hasVerifier = 1;
}

def Lowlp_TakeTurnOp : Lowlp_Op<"take_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until it is this warpgroup's turn to multiply";
  let description = [{
    Between this and `lowlp.give_turn` one warpgroup of the block begins its products, while another does what comes before
    and after. Each gives the turn to the next, and the last one to the first; before the first one takes it, a
    `lowlp.give_turn first` lets it. Results do not depend on it, and the CPU target does nothing.

    ```mlir
    lowlp.give_turn first
    scf.for ... {
      lowlp.take_turn
      %s = lowlp.wgmma ...
      lowlp.wgmma_commit
      lowlp.give_turn
      %d = lowlp.wgmma_wait 0 takes %s : ...
    }
    ```

    Lowers to `simt.take_turn`.
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_GiveTurnOp : Lowlp_Op<"give_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let the next warpgroup multiply";
  let description = [{
    As `lowlp.take_turn` says; `first` is for the begin.

    ```mlir
    lowlp.give_turn
    ```

    Lowers to `simt.give_turn`, with `first` of the last warpgroup alone.
  }];
  let arguments = (ins UnitAttr:$first);
  let assemblyFormat = "(`first` $first^)? attr-dict";
}

#endif // LOWLP_IR_LOWLPWGMMAOPS_TD
