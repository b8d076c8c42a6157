//===- LowlpWarpOps.td - exchange within each warp ------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPWARPOPS_TD
#define LOWLP_IR_LOWLPWARPOPS_TD

include "lowlp/IR/LowlpEnums.td"
include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_WarpShuffleOp : Lowlp_Op<"warp_shuffle", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "each thread's registers from another thread of its warp";
  let description = [{
    Lane t of every warp gets what another lane holds of the tile, register for register; which one, the number `lane`,
    from 0 to 31 and the same in all threads, says (PTX ISA, `shfl.sync`):

    - `xor`: lane `t xor lane`;
    - `up`: lane `t - lane`; lanes below `lane` keep what they have;
    - `down`: lane `t + lane`; lanes from `32 - lane` on keep what they have;
    - `idx`: lane `lane`.

    The tile's elements move with the registers, so the layout must say of each element one thread that holds it. The
    CPU target reports a lane outside of 0 to 31.

    ```mlir
    %other = lowlp.warp_shuffle xor %x, %c4 : !lowlp.tile<64xf16, spatial(32).local(2)>
    ```

    Lowers to `gpu.shuffle` of 32-bit words.
  }];
  let arguments = (ins Lowlp_ShuffleMode:$mode, Lowlp_TileType:$source, Index:$lane);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$mode $source `,` $lane attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_BallotOp : Lowlp_Op<"ballot", [Pure]> {
  let summary = "where a condition holds, as one bit a lane";
  let description = [{
    The tile holds `ui1`. For each warp and each of a thread's registers the result has one `ui32` whose bit t is the
    condition that lane t holds there (PTX ISA, `vote.sync.ballot`); every lane of the warp holds it. For W warps and n
    elements a thread its shape is W x n, and its layout

    ```
    spatial(W, 1).reduce(spatial(1, 32), dims=[1], keep_dims=True).local(1, n)
    ```

    With `lowlp.popcount` it counts, with a mask of the lanes below it ranks.

    ```mlir
    %b = lowlp.ballot %c : !lowlp.tile<32xui1, spatial(32)>
      -> !lowlp.tile<1x1xui32, reduce(spatial(1, 32), dims=[1], keep_dims=True)>
    ```

    Lowers to `simt.ballot`.
  }];
  let arguments = (ins Lowlp_TileType:$source);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPWARPOPS_TD
