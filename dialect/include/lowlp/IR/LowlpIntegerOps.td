//===- LowlpIntegerOps.td - bits and quotients of integers ----*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPINTEGEROPS_TD
#define LOWLP_IR_LOWLPINTEGEROPS_TD

include "lowlp/IR/LowlpEnums.td"
include "lowlp/IR/LowlpKernelOps.td"

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

/// `text` ends with what the op lowers to.
class Lowlp_BitsOp<string mnemonic, string title, string text>
    : Lowlp_Op<mnemonic, [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = title;
  let description = [{
    Element by element, on integers of any width.
}] # text # [{

    ```mlir
    %c = lowlp.}] # mnemonic # [{ %a, %b : !lowlp.tile<64xui4, spatial(32).local(2)>
    ```
  }];
  let arguments = (ins Lowlp_TileType:$lhs, Lowlp_TileType:$rhs);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_AndOp : Lowlp_BitsOp<"and", "the bits that are set in both tiles", [{
    Lowers to `arith.andi` on a thread's registers.}]>;
def Lowlp_OrOp : Lowlp_BitsOp<"or", "the bits that are set in one of two tiles, or in both", [{
    Lowers to `arith.ori` on a thread's registers.}]>;
def Lowlp_XorOp : Lowlp_BitsOp<"xor", "the bits that differ between two tiles", [{
    Lowers to `arith.xori` on a thread's registers.}]>;

def Lowlp_ShlOp : Lowlp_BitsOp<"shl", "bits moved to the left", [{
    The second tile says by how many; read without a sign, an amount of the width or more leaves 0. Bits that leave the
    element are lost (PTX ISA, `shl`).

    Lowers to `arith.shli` on 32 bits.}]>;
def Lowlp_ShrOp : Lowlp_BitsOp<"shr", "bits moved to the right", [{
    The second tile says by how many. Integers with a sign are filled up with it, others with 0; read without a sign, an
    amount of the width or more leaves nothing else (PTX ISA, `shr`).

    Lowers to `arith.shrsi` or `arith.shrui` on 32 bits.}]>;

def Lowlp_NotOp : Lowlp_Op<"not", [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = "all bits of a tile changed";
  let description = [{
    Element by element, on integers of any width; of `ui1` the other truth value.

    ```mlir
    %b = lowlp.not %a : !lowlp.tile<64xui1, spatial(32).local(2)>
    ```

    Lowers to `arith.xori` with ones.
  }];
  let arguments = (ins Lowlp_TileType:$operand);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

class Lowlp_BitCountOp<string mnemonic, string title, string lowering>
    : Lowlp_Op<mnemonic, [Pure, Lowlp_LayoutTransferInterface]> {
  let summary = title;
  let description = [{
    Element by element, on integers of any width; the result is a tile of `si32` in the same layout.

    ```mlir
    %n = lowlp.}] # mnemonic # [{ %a : !lowlp.tile<64xui8, spatial(32).local(2)> -> !lowlp.tile<64xsi32, spatial(32).local(2)>
    ```

    Lowers to `}] # lowering # [{`.
  }];
  let arguments = (ins Lowlp_TileType:$operand);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_PopcountOp : Lowlp_BitCountOp<"popcount", "how many bits are set", "math.ctpop">;
def Lowlp_CountLeadingZerosOp
    : Lowlp_BitCountOp<"count_leading_zeros", "how many bits are clear above the highest one that is set", "math.ctlz">;

def Lowlp_FunnelShiftOp
    : Lowlp_Op<"funnel_shift", [Pure, AllTypesMatch<["low", "high", "amount", "result"]>,
      Lowlp_LayoutTransferInterface]> {
  let summary = "32 bits out of two words that stand next to each other";
  let description = [{
    Element by element, on `si32` or `ui32`: `high` and `low` are one number of 64 bits. `left` shifts it to the left
    and gives its upper half, `right` shifts it to the right and gives its lower half. The amount is read without a
    sign: `wrap` takes it modulo 32, `clamp` takes at most 32, which gives the other word (PTX ISA, `shf`). With both
    words the same, `wrap` rotates.

    ```mlir
    %c = lowlp.funnel_shift right wrap %low, %high, %n : !lowlp.tile<64xui32, spatial(32).local(2)>
    ```

    Lowers to `simt.funnel_shift`.
  }];
  let arguments = (ins Lowlp_ShiftDirection:$direction, Lowlp_ShiftMode:$mode, Lowlp_TileType:$low,
      Lowlp_TileType:$high, Lowlp_TileType:$amount);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$direction $mode $low `,` $high `,` $amount attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Quotients
//===----------------------------------------------------------------------===//

class Lowlp_QuotientOp<string mnemonic, string title, string text>
    : Lowlp_Op<mnemonic, [Pure, SameOperandsAndResultType, Lowlp_LayoutTransferInterface]> {
  let summary = title;
  let description = [{
    Element by element, on integers of 16 or 32 bits.}] # text # [{ The divisor must not be 0: the CPU
    target reports one, on a GPU the result is undefined.

    ```mlir
    %c = lowlp.}] # mnemonic # [{ %a, %b : !lowlp.tile<64xsi32, spatial(32).local(2)>
    ```

    Lowers to `arith.divsi` or `arith.divui` on 32 bits, and a correction where signs differ.
  }];
  let arguments = (ins Lowlp_TileType:$lhs, Lowlp_TileType:$rhs);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Lowlp_FloorDivOp : Lowlp_QuotientOp<"floor_div", "the quotient of integers, rounded down", [{
    As Python's `//`: -7 by 2 is -4. The smallest number by -1 wraps around to itself.}]>;
def Lowlp_ModOp : Lowlp_QuotientOp<"mod", "what remains of a division that rounds down", [{
    As Python's `%`: it has the sign of the divisor, -7 by 2 leaves 1.}]>;

#endif // LOWLP_IR_LOWLPINTEGEROPS_TD
