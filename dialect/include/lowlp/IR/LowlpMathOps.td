//===- LowlpMathOps.td - functions, comparisons, choices ------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPMATHOPS_TD
#define LOWLP_IR_LOWLPMATHOPS_TD

include "lowlp/IR/LowlpEnums.td"
include "lowlp/IR/LowlpKernelOps.td"

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

class Lowlp_ExtremeOp<string mnemonic, string text> : Lowlp_Op<mnemonic, [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = "the " # text # " of two tiles, element by element";
  let description = [{
    Both tiles have one type, of `f16`, `bf16` or `f32` elements or of integers of 16 or 32 bits. Exact. Where one
    element is NaN the result is NaN; -0 is less than +0 (IEEE 754-2019, minimum and maximum).

    ```mlir
    %c = lowlp.}] # mnemonic # [{ %a, %b : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `arith.}] # mnemonic # [{f` on a vector, or to its twin on integers.
  }];
  let arguments = (ins Lowlp_TileType:$lhs, Lowlp_TileType:$rhs);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_MinimumOp : Lowlp_ExtremeOp<"minimum", "smaller">;
def Lowlp_MaximumOp : Lowlp_ExtremeOp<"maximum", "larger">;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// `accuracy` ends with what the op lowers to.
class Lowlp_FunctionOp<string mnemonic, string text, string accuracy>
    : Lowlp_Op<mnemonic, [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = text;
  let description = [{
    Element by element, on `f16`, `bf16` or `f32`.
}] # accuracy # [{

    ```mlir
    %b = lowlp.}] # mnemonic # [{ %a : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```
  }];
  let arguments = (ins Lowlp_TileType:$operand);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_AbsOp : Lowlp_FunctionOp<"abs", "the absolute value", [{
    Exact: it clears the sign, that of NaN too. On `si16` and `si32` also, where the smallest number stays.

    Lowers to `math.absf` or `math.absi` on a vector.}]>;

def Lowlp_ExpOp : Lowlp_FunctionOp<"exp", "e to the power of each element", [{
    Computed in `f32`; elements of 16 bits are rounded once, at the end. The relative error in `f32` is at most 2^-21
    where the result is a normal number; beyond the range of `f32` it is infinity, or 0 below.

    Lowers to `math.exp2` of x log2 e, and a correction for what the rounding of this product lost.}]>;

def Lowlp_Exp2Op : Lowlp_FunctionOp<"exp2", "2 to the power of each element", [{
    Computed in `f32`; elements of 16 bits are rounded once, at the end. The relative error in `f32` is at most 2^-21
    where the result is a normal number. It is the cheapest of the exponential functions: one instruction of a GPU.

    Lowers to `math.exp2` (PTX ISA, `ex2.approx`).}]>;

def Lowlp_Log2Op : Lowlp_FunctionOp<"log2", "the logarithm to the base of 2", [{
    Computed in `f32`; elements of 16 bits are rounded once, at the end. The error in `f32` is at most 2^-21, absolute
    between 0.5 and 2, else relative. It is -infinity for 0 and NaN for negative numbers.

    Lowers to `math.log2` (PTX ISA, `lg2.approx`).}]>;

def Lowlp_SqrtOp : Lowlp_FunctionOp<"sqrt", "the square root", [{
    Computed in `f32`, rounded to nearest; elements of 16 bits are rounded a second time, which changes nothing.
    It is NaN for negative numbers.

    Lowers to `math.sqrt` (PTX ISA, `sqrt.rn`).}]>;

def Lowlp_RsqrtOp : Lowlp_FunctionOp<"rsqrt", "one over the square root", [{
    Computed in `f32`; elements of 16 bits are rounded once, at the end. The relative error in `f32` is at most 2^-22.
    It is infinity for 0, with its sign, and NaN for negative numbers.

    Lowers to `math.rsqrt` (PTX ISA, `rsqrt.approx`).}]>;

def Lowlp_TanhOp : Lowlp_FunctionOp<"tanh", "the hyperbolic tangent", [{
    Computed in `f32`; elements of 16 bits are rounded once, at the end. The relative error in `f32` is at most 2^-20.

    Lowers to a polynomial below 0.5 and to 1 - 2 / (e^2x + 1) above.}]>;

//===----------------------------------------------------------------------===//
// Comparisons and choices
//===----------------------------------------------------------------------===//

def Lowlp_CompareOp : Lowlp_Op<"compare", [Pure, AllTypesMatch<["lhs", "rhs"]>, Lowlp_LayoutTransferInterface]> {
  let summary = "compare two tiles, element by element";
  let description = [{
    The operands hold `f16`, `bf16`, `f32` or integers of 16 or 32 bits; the result holds `ui1` in the same layout, 1
    where the comparison holds. NaN differs from everything, itself too, and is in no order with anything.

    ```mlir
    %c = lowlp.compare lt %a, %b : !lowlp.tile<64xf32, spatial(32).local(2)> -> !lowlp.tile<64xui1, spatial(32).local(2)>
    ```

    Lowers to `arith.cmpf` or `arith.cmpi`.
  }];
  let arguments = (ins Lowlp_ComparePredicate:$predicate, Lowlp_TileType:$lhs, Lowlp_TileType:$rhs);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_SelectOp : Lowlp_Op<"select", [Pure, AllTypesMatch<["on_true", "on_false", "result"]>,
    Lowlp_LayoutTransferInterface]> {
  let summary = "choose between two tiles, element by element";
  let description = [{
    The element of the first tile where the condition, a tile of `ui1` in the same layout, is 1, else that of the
    second. The tiles have one type, of any elements.

    ```mlir
    %r = lowlp.select %c, %a, %b : !lowlp.tile<64xui1, spatial(32).local(2)>, !lowlp.tile<64xf32, spatial(32).local(2)>
    ```

    Lowers to `arith.select`.
  }];
  let arguments = (ins Lowlp_TileType:$condition, Lowlp_TileType:$on_true, Lowlp_TileType:$on_false);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = [{
    $condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)
  }];
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPMATHOPS_TD
