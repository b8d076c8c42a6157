//===- LowlpEncodeOps.td - codes that a kernel writes ---------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPENCODEOPS_TD
#define LOWLP_IR_LOWLPENCODEOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_EncodeOp : Lowlp_Op<"encode", [Pure]> {
  let summary = "bit planes of codes";
  let description = [{
    What products of bits take of operands that are made while a program runs: bit i of 32 codes side by side in a word.
    Codes of a type of 1 to 8 bits, one after the other, need no op of their own: `lowlp.cast` makes them, and
    `lowlp.view` shows their bits as words.

    The source holds `si8` or `ui8`, and its last dimension is 32 codes that one thread holds side by side. The result
    holds b = 1 to 8 planes, `ui32`: in place of dimensions [..., W, 32] it has [..., b, W]. With `L` the layout of the
    source over `local(1, ..., 1, 32)`, its layout is `L`, the last two dimensions exchanged, times `local(1, ..., b, 1)`:
    a thread holds all planes of its own codes.

        bit 8 (c mod 4) + c / 4 of planes[..., i, w]  =  bit i of codes[..., w, c]

    Higher bits of a code are left out. The order of bits in a word is that of four codes in each register: the planes
    are then eight registers with the 8 x 8 bits of each of their bytes transposed (Warren, Hacker's Delight, section
    7-3). Products do not depend on it as long as the other operand has the same.

    ```mlir
    %p = lowlp.encode %c : !lowlp.tile<8x4x32xui8, spatial(8, 4, 1).local(1, 1, 32)>
      -> !lowlp.tile<8x2x4xui32, spatial(8, 1, 4).local(1, 2, 1)>
    ```

    Lowers to three steps of `arith.andi`, `arith.ori` and shifts on words of 32 bits, less for fewer planes: 96
    instructions for 8 planes of 32 codes.
  }];
  let arguments = (ins Lowlp_TileType:$codes);
  let results = (outs Lowlp_TileType:$planes);
  let assemblyFormat = "$codes attr-dict `:` type($codes) `->` type($planes)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPENCODEOPS_TD
