//===- LowlpLayoutOps.td - from one layout to another ---------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPLAYOUTOPS_TD
#define LOWLP_IR_LOWLPLAYOUTOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_ConvertLayoutOp : Lowlp_Op<"convert_layout", [Pure, Lowlp_LayoutTransferInterface]> {
  let summary = "hold a tile in another layout";
  let description = [{
    The result has the elements of the source, held as its own layout says. Shape, element type and threads stay. Any
    two layouts will do, also such with replicas and extents that are no powers of two.

    ```mlir
    %b = lowlp.convert_layout %a : !lowlp.tile<8x4xf32, spatial(8, 4)> -> !lowlp.tile<8x4xf32, column_spatial(8, 4)>
    ```

    Lowers to the cheapest of these that is possible:

    - registers: every thread holds what it needs; this costs nothing where all threads find it at the same place;
    - shuffles: every warp holds what its threads need. Each round moves up to 32 bits into every lane (`gpu.shuffle`,
      PTX ISA `shfl.sync`);
    - shared memory: `lowlp-expand-exchanges` makes a store, a barrier and a load of it. This is the one to take where
      elements go from warp to warp, or where the rounds would be many.
  }];
  let arguments = (ins Lowlp_TileType:$source);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // LOWLP_IR_LOWLPLAYOUTOPS_TD
