//===- SimtIntegerOps.td - instructions on 32-bit words ----*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTINTEGEROPS_TD
#define LOWLP_IR_SIMTINTEGEROPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_FunnelShiftOp : Simt_Op<"funnel_shift", [Pure]> {
  let summary = "32 bits out of two words that stand next to each other";
  let description = [{
    The upper half of the 64 bits `high : low` shifted to the left by `amount` modulo 32, or with `right` the lower half
    of these bits shifted to the right (PTX ISA, `shf.l.wrap.b32` and `shf.r.wrap.b32`).

    ```mlir
    %c = simt.funnel_shift %low, %high, %n right
    ```
  }];
  let arguments = (ins I32:$low, I32:$high, I32:$amount, UnitAttr:$right);
  let results = (outs I32:$result);
  let assemblyFormat = "$low `,` $high `,` $amount (`right` $right^)? attr-dict";
}

def Simt_Lop3Op : Simt_Op<"lop3", [Pure]> {
  let summary = "any function of three words, bit by bit";
  let description = [{
    Bit by bit the entry `table >> (4 a + 2 b + c)` (PTX ISA, `lop3.b32`): the table is the function of 0xf0, 0xcc and
    0xaa in place of a, b and c.

    ```mlir
    %d = simt.lop3 %a, %b, %c table 0xea        // (a & b) | c
    ```
  }];
  let arguments = (ins I32:$a, I32:$b, I32:$c, ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<255>]>:$table);
  let results = (outs I32:$result);
  let assemblyFormat = "$a `,` $b `,` $c `table` $table attr-dict";
}

def Simt_PrmtOp : Simt_Op<"prmt", [Pure]> {
  let summary = "four of the eight bytes of two words";
  let description = [{
    Byte `i` of the result is the byte of `b : a` that bits 0 to 2 of nibble `i` of `selector` name, or where bit 3 is
    set, copies of its sign bit (PTX ISA, `prmt.b32` in its default mode).

    ```mlir
    %d = simt.prmt %a, %b selector 0x4341       // bytes 1 and 3 of a, each with a byte 0 of b above
    ```
  }];
  let arguments = (ins I32:$a, I32:$b, ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<65535>]>:$selector);
  let results = (outs I32:$result);
  let assemblyFormat = "$a `,` $b `selector` $selector attr-dict";
}

def Simt_SelectBytesOp : Simt_Op<"select_bytes", [Pure]> {
  let summary = "four of the eight bytes of two words that a third word names";
  let description = [{
    As `simt.prmt` with a selector in a register, so that each thread may take other bytes (PTX ISA, `prmt.b32`). Bit 3 of each nibble
    must be zero, and bits from 16 on are ignored.

    ```mlir
    %d = simt.select_bytes %a, %b by %selector
    ```
  }];
  let arguments = (ins I32:$a, I32:$b, I32:$selector);
  let results = (outs I32:$result);
  let assemblyFormat = "$a `,` $b `by` $selector attr-dict";
}

def Simt_WidenFloatsOp : Simt_Op<"widen_floats", [Pure]> {
  let summary = "two halves of two 8-bit floats";
  let description = [{
    The `f8E4M3FN` in bytes 2 h and 2 h + 1 of a word as `f16`, exactly (PTX ISA, `cvt.rn.f16x2.e4m3x2`): one instruction for two
    values from sm_89 on, and before it five. What becomes of a NaN is not said.

    ```mlir
    %low = simt.widen_floats %word half 0
    ```
  }];
  let arguments = (ins I32:$word, ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<1>]>:$half);
  let results = (outs VectorOfLengthAndType<[2], [F16]>:$result);
  let assemblyFormat = "$word `half` $half attr-dict `:` type($result)";
}

#endif // LOWLP_IR_SIMTINTEGEROPS_TD
