//===- LowlpComputeOps.td - arithmetic on register tiles ------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPCOMPUTEOPS_TD
#define LOWLP_IR_LOWLPCOMPUTEOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_SplatOp : Lowlp_Op<"splat", [Pure, Lowlp_LayoutTransferInterface]> {
  let summary = "a tile with one value everywhere";
  let description = [{
    Tilus, table 1: AllocateRegister with an initial value, in SSA form. The scalar has the tile's element type, which
    is `f16`, `bf16` or `f32`; for a tile of integers of 16 or 32 bits it is `i16` or `i32`.

    ```mlir
    %acc = lowlp.splat %zero : f32 -> !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `vector.broadcast`.
  }];
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger]>:$value);
  let results = (outs Lowlp_TileType:$tile);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($tile)";
  let hasVerifier = 1;
}

def Lowlp_CastOp : Lowlp_Op<"cast", [Pure, Lowlp_LayoutTransferInterface]> {
  let summary = "convert the elements of a tile";
  let description = [{
    From any element type to any other, the layout staying as it is (Tilus, table 1: Cast). The result is the nearest
    value of the type, of two equally near ones the even one; it is rounded once. Towards integers, and floats of at
    most 8 bits, values saturate to the smallest and largest finite number, from integers too: nothing wraps around.
    NaN becomes NaN where the type has one, else the largest number of a float, else 0; its sign is dropped.

    ```mlir
    %f = lowlp.cast %q : !lowlp.tile<16x8xsi6, ...> -> !lowlp.tile<16x8xf16, ...>
    ```

    Lowers to `arith` on the codes that a thread holds.
  }];
  let arguments = (ins Lowlp_TileType:$source);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Lowlp_ViewOp : Lowlp_Op<"view", [Pure]> {
  let summary = "see the same registers as another element type and layout";
  let description = [{
    Legal when both tiles are held by the same threads and every thread holds the same number of bits (Tilus,
    section 6.2). Bit `j` of a thread's registers stays bit `j`.

    ```mlir
    %q = lowlp.view %bytes : !lowlp.tile<96xui8, local(3).spatial(32)>
      -> !lowlp.tile<16x8xsi6, local(2, 1).column_spatial(4, 8).local(2, 1)>
    ```

    Lowers to nothing between types of at most 8 bits, else to `vector.bitcast`.
  }];
  let arguments = (ins Lowlp_TileType:$source);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Lowlp_DotOp : Lowlp_Op<"dot", [Pure, AllTypesMatch<["c", "result"]>]> {
  let summary = "the product of two tiles added to a third";
  let description = [{
    `d = a * b + c` with `a` [M, K], `b` [K, N] and `c`, `d` [M, N], or [S M, N] by slices (Tilus, table 1: Dot). A matrix instruction of 16 x 8
    x K' does the work (PTX ISA, `mma.sync`):

    | Elements of a and b             | Accumulators | K'  |
    |---------------------------------|--------------|-----|
    | both `f16`, or both `bf16`      | `f32`        | 16  |
    | `si8` or `ui8`, each            | `si32`       | 32  |
    | `f8E4M3FN` or `f8E5M2`, each    | `f32`        | 32  |
    | both `ui1`                      | `si32`       | 256, or 128 where K, or a slice of it, is no multiple of 256 |

    Sums of integers wrap around. The layouts must divide by the registers of the instruction's fragments (PTX ISA,
    "Matrix Fragments for mma.m16n8k16", "k32", "k128" and "k256"), which with `e` elements in 32 bits are

    ```
    a: spatial(8, 4).local(1, e)           fragment: column_local(2, 2).spatial(8, 4).local(1, e)
    b: column_spatial(4, 8).local(e, 1)    fragment: local(2, 1).column_spatial(4, 8).local(e, 1)
    c: spatial(8, 4).local(1, 2)           fragment: local(2, 1).spatial(8, 4).local(1, 2)
    ```

    (for K' = 128 `local(2, 1)` of a, and one register of b). A warp may hold its registers in any order, but must hold all of those that make the fragments which its part of `c`
    needs, each at one place in all warps.

    **Vectors.** The sum does not depend on which element of K an instruction takes first, as long as `a` and `b` agree. So a
    lane may hold v elements of K side by side in both, v being e times a power of two: its registers are fragments of v / e
    registers of K, in whose place stand others of the same block of 4 v elements. What `lowlp.lookup_vectors` makes is held so.

    ```
    a: spatial(8, 4).local(1, v)           register r of lane t of four: elements v t + e r and on of a block
    b: column_spatial(4, 8).local(v, 1)    the same elements
    ```

    **Slices.** Where `c` has S times the rows of `a`, K is cut into S equal slices, and rows s M to (s + 1) M of `d` are the
    product of slice s alone. So warps divide K among themselves, each with a part of the sums, which the program adds:

    ```
    d[s M + m, n] = c[s M + m, n] + sum over k in [s K / S, (s + 1) K / S) of a[m, k] * b[k, n]
    ```

    ```mlir
    %d = lowlp.dot %a, %b, %c : !lowlp.tile<16x16xf16, ...>, !lowlp.tile<16x8xf16, ...>, !lowlp.tile<16x8xf32, ...>
    ```

    Lowers to `simt.mma`, in increasing order of K, or of the registers of its blocks; where `a` is a splat and K has four steps of the instruction or more, an even
    number, to the sums of the first and of the second halves of the steps, to which `c` is added last.
  }];
  let arguments = (ins Lowlp_TileType:$a, Lowlp_TileType:$b, Lowlp_TileType:$c);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many slices K is cut into; 1 for a whole product.
    int64_t getNumSlices() { return getC().getType().getShape()[0] / getA().getType().getShape()[0]; }
  }];
}

class Lowlp_BinaryOp<string mnemonic, string text, string elements = "`f16`, `bf16`, `f32`, `si16`, `ui16`, `si32` or "
    "`ui32`", string integers = " Integers wrap around."> : Lowlp_Op<mnemonic, [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = text # " of two tiles, element by element";
  let description = [{
    Both tiles have one type, of }] # elements # [{; a narrower tile is cast first (Tilus, table 1).
    Floats are rounded once: multiply and add are not contracted.}] # integers # [{

    ```mlir
    %c = lowlp.}] # mnemonic # [{ %a, %b : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `arith` on a vector.
  }];
  let arguments = (ins Lowlp_TileType:$lhs, Lowlp_TileType:$rhs);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_AddOp : Lowlp_BinaryOp<"add", "sum">;
def Lowlp_SubOp : Lowlp_BinaryOp<"sub", "difference">;
def Lowlp_MulOp : Lowlp_BinaryOp<"mul", "product">;
def Lowlp_DivOp : Lowlp_BinaryOp<"div", "quotient", "`f16`, `bf16` or `f32`", "">;

def Lowlp_FmaOp : Lowlp_Op<"fma", [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = "a product of two tiles and a third, rounded once";
  let description = [{
    `a * b + c`, element by element, on `f16`, `bf16` or `f32`; the product is not rounded before it is added (IEEE 754,
    fusedMultiplyAdd).

    ```mlir
    %d = lowlp.fma %a, %b, %c : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `math.fma`.
  }];
  let arguments = (ins Lowlp_TileType:$a, Lowlp_TileType:$b, Lowlp_TileType:$c);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_RescaleOp : Lowlp_Op<"rescale", [Pure, AllTypesMatch<["values", "result"]>]> {
  let summary = "a product with factors that are mostly 1";
  let description = [{
    `values * factors`, element by element, of `f32`; factors are repeated as `lowlp.broadcast` does. A warp whose
    factors are all 1 skips the multiplication, which would change no bit. So accumulators of online softmax, which a new
    maximum seldom scales down, cost one vote instead of a product for each register.

    ```mlir
    %d = lowlp.rescale %acc, %f : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>,
      !lowlp.tile<16x1xf32, local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)>
    ```

    Lowers to a branch on `simt.ballot`.
  }];
  let arguments = (ins Lowlp_TileType:$values, Lowlp_TileType:$factors);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$values `,` $factors attr-dict `:` type($result) `,` type($factors)";
  let hasVerifier = 1;
}

def Lowlp_NegOp : Lowlp_Op<"neg", [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = "the negative of a tile";
  let description = [{
    Element by element, on `f16`, `bf16`, `f32`, `si16` or `si32` (Tilus, table 1: Neg). Integers wrap around: the
    smallest one stays.

    ```mlir
    %c = lowlp.neg %a : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `arith.negf`, or to `arith.subi` from 0.
  }];
  let arguments = (ins Lowlp_TileType:$operand);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPCOMPUTEOPS_TD
