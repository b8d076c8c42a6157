//===- LowlpShapeOps.td - iota, reduce, broadcast, transpose --*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPSHAPEOPS_TD
#define LOWLP_IR_LOWLPSHAPEOPS_TD

include "lowlp/IR/LowlpEnums.td"
include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_IotaOp : Lowlp_Op<"iota", [Pure, Lowlp_LayoutTransferInterface]> {
  let summary = "a tile of the indices of its elements along one dimension";
  let description = [{
    Element (i, j, ...) of the result is its index along the dimension, from 0 on, as an `f32`, `si32` or `ui32`; the
    extent is at most 2^24 for `f32`, 2^31 for integers, so that every index is exact. Masks are comparisons with it.

    ```mlir
    %j = lowlp.iota dim 1 : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to arithmetic on the thread's number.
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_ReduceOp : Lowlp_Op<"reduce", [Pure, Lowlp_LayoutTransfer]> {
  let summary = "combine the elements of a tile along one dimension";
  let description = [{
    Sum (`add`), largest (`max`) or smallest (`min`) element; max and min as `lowlp.maximum` and `lowlp.minimum`. The
    tile holds `f16`, `bf16`, `f32`, `si32` or `ui32`; floats of 16 bits are combined in `f32` and rounded once, at the
    end, and sums of integers wrap around.

    The result's layout is that of the source, reduced over the dimension (Tilus, appendix B): the dimension has extent
    1, or is gone. All threads that hold an element of the result hold the same bits.

    The order is fixed by the layout: first every thread combines its elements in the order of their local index,
    then lanes of a warp whose numbers differ in one bit combine their values, from the lowest bit that counts within
    the dimension to the highest, and then every thread combines the values of the warps, in the order of their index
    along the dimension. So the same inputs give the same bits, run to run.

    ```mlir
    %s = lowlp.reduce add %x dim 1 : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
      -> !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
    ```

    Lowers to `arith` within a thread and to `gpu.shuffle` across the threads of a warp. What is spread over several
    warps goes through shared memory, by `lowlp-expand-exchanges`.
  }];
  let arguments = (ins Lowlp_ReduceKind:$kind, Lowlp_TileType:$source, I64Attr:$dim);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$kind $source `dim` $dim attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_BroadcastOp : Lowlp_Op<"broadcast", [Pure, Lowlp_LayoutTransfer]> {
  let summary = "repeat a tile along dimensions";
  let description = [{
    Dimensions are matched from the last one, as in NumPy: each extent of the source is that of the result, or 1, and
    leading ones may be absent. Nothing moves between threads: each thread must hold already what it needs for the
    result, and at the same place of its registers as every other thread.

    ```mlir
    %b = lowlp.broadcast %s : !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
      -> !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to copies of registers.
  }];
  let arguments = (ins Lowlp_TileType:$source);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_TransposeOp : Lowlp_Op<"transpose", [Pure, Lowlp_LayoutTransfer]> {
  let summary = "name the dimensions of a tile in another order";
  let description = [{
    Dimension `k` of the result is dimension `permutation[k]` of the source, in its layout too, so that every element
    stays where it is.

    ```mlir
    %t = lowlp.transpose %x [1, 0] : !lowlp.tile<16x8xf16, spatial(8, 4).local(2, 2)>
      -> !lowlp.tile<8x16xf16, column_spatial(4, 8).column_local(2, 2)>
    ```

    Lowers to nothing.
  }];
  let arguments = (ins Lowlp_TileType:$source, DenseI64ArrayAttr:$permutation);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source $permutation attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_PartOp : Lowlp_Op<"part", [Pure]> {
  let summary = "the part of a tile with some first indices";
  let description = [{
    Of a tile [4, 2, 16, 4] the part `[3, 0]` is the 16 x 4 from [3, 0] on. Every thread must hold such elements for all of these
    indices, so that nothing moves between threads. A `lowlp.view` in front names what is to be taken apart: columns, say.

    ```mlir
    %halves = lowlp.view %x : !lowlp.tile<64x16xf16, spatial(4, 1).local(1, 2).spatial(8, 4).local(2, 2)>
      -> !lowlp.tile<2x64x8xf16, local(2, 1, 1).spatial(1, 4, 1).spatial(1, 8, 4).local(1, 2, 2)>
    %right = lowlp.part %halves[1] : !lowlp.tile<2x64x8xf16, local(2, 1, 1).spatial(1, 4, 1).spatial(1, 8, 4).local(1, 2, 2)>
      -> !lowlp.tile<64x8xf16, spatial(4, 1).spatial(8, 4).local(2, 2)>
    ```

    Lowers to a choice of registers.
  }];
  let arguments = (ins Lowlp_TileType:$source, DenseI64ArrayAttr:$indices);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source `` $indices attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPSHAPEOPS_TD
