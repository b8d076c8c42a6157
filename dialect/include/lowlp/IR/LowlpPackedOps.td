//===- LowlpPackedOps.td - weights in the packed format -------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPPACKEDOPS_TD
#define LOWLP_IR_LOWLPPACKEDOPS_TD

include "lowlp/IR/LowlpAttrs.td"
include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_ViewPackedOp : Lowlp_Op<"view_packed", [Pure]> {
  let summary = "see a pointer as packed weights";
  let description = [{
    A matrix of weights [rows, K], or several [number, rows, K]. Extents are numbers or `index` values. The view must be used where this op is visible: it is not a loop-carried value. An address that is a multiple of 16
    bytes (`lowlp.align`) allows wide loads.

    ```mlir
    %v = lowlp.view_packed %p shape [4096, %k] : !lowlp.ptr<ui32> -> !lowlp.packed<4096x?, #lowlp.codec<int6>, f16>
    ```

    Lowers to nothing, with the loads that use it.
  }];
  let arguments = (ins Lowlp_PtrType:$source, Variadic<Index>:$dynamicShape, DenseI64ArrayAttr:$staticShape);
  let results = (outs Lowlp_PackedType:$view);
  let assemblyFormat = [{
    $source `shape` custom<DynamicIndexList>($dynamicShape, $staticShape) attr-dict
    `:` type($source) `->` type($view)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedShape();
  }];
}

def Lowlp_LoadPackedOp : Lowlp_Op<"load_packed", [MemoryEffects<[MemRead]>, Lowlp_LayoutTransfer]> {
  let summary = "load a tile of codes from packed weights";
  let description = [{
    The codes of rows from `row` and of K from `k` on, the last two offsets, which are multiples of a unit's rows and of
    its weights of a row (the CPU target reports others); of several matrices the first offset says which. A warp holds whole units as operands A of its matrix instructions, of R tiles of 16 rows and S
    steps along K each:

    ```
    local(R, S).column_local(2, 2).spatial(8, 4).local(1, 2)
    ```

    or only n < S steps of a unit, from `step` on; what follows these along K of the tile, in the next warp, are the same
    steps of the next unit. The R tiles may be spread over warps, which then load the same words:
    `spatial(R, 1).local(1, S).` and so on.

    Of vectors the tile has K / v codes of one `book` for K weights of a row; or, without, those of all r books, which are beside each
    other for each vector, as they are in the words. Where the codes of books have several widths, these are bytes. There are S steps
    of four vectors along K:

    ```
    local(R, S).local(2, 1).spatial(8, 4).local(1, r)
    ```

    Codes outside of the view are those whose stored bits are zero. `in_bounds` promises that there are none: the test is dropped, and
    the CPU target reports a broken promise.

    ```mlir
    %q = lowlp.load_packed %v[%row, %k] : !lowlp.packed<4096x4096, #lowlp.codec<int6>, f16>
      -> !lowlp.tile<16x64xsi6, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
    %c = lowlp.load_packed %b[%row, %k] book 1 : !lowlp.packed<4096x4096, #lowlp.codec<vec8:2x8:f16>, f16.k128>
      -> !lowlp.tile<16x16xui8, local(1, 4).local(2, 1).spatial(8, 4)>
    ```

    `lowlp-reinterpret-layouts` makes of it a load of words and `lowlp.unpack`.
  }];
  let arguments = (ins Lowlp_PackedType:$source, Variadic<Index>:$offsets, DefaultValuedAttr<I64Attr, "0">:$step,
      OptionalAttr<I64Attr>:$book, UnitAttr:$in_bounds);
  let results = (outs Lowlp_TileType:$tile);
  let assemblyFormat = [{
    $source `[` $offsets `]` (`step` $step^)? (`book` $book^)? (`in_bounds` $in_bounds^)? attr-dict `:` type($source) `->` type($tile)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getRow() { return getOffsets()[getOffsets().size() - 2]; }
    ::mlir::Value getK() { return getOffsets().back(); }
  }];
}

class Lowlp_PackedWordsOp<string mnemonic, list<Trait> traits = []> : Lowlp_Op<mnemonic, [Pure] # traits> {
  let hasVerifier = 1;
}

def Lowlp_UnpackOp : Lowlp_PackedWordsOp<"unpack"> {
  let summary = "the codes in words of the packed format";
  let description = [{
    Takes the bits of each code from where the placement has them, and turns the sign bit of signed ones over again; or,
    of unsigned ones, only as many bits as the result's elements have, from `bit` on: a slice of the codes. Of vectors
    the codes of a `book`, or of all. The words are
    held as `lowlp-reinterpret-layouts` loads them: a tile [units of rows, units of K, 32 words], each lane with
    its own.

    ```mlir
    %q = lowlp.unpack %words from "int4.f16" : !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
      -> !lowlp.tile<16x64xsi4, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
    ```

    Lowers to shifts and masks, bit by bit where the placement needs it: this is what plans are tested against. Words
    that the result has as they are cost nothing.
  }];
  let arguments = (ins Lowlp_TileType:$words, Lowlp_PlacementAttr:$placement, DefaultValuedAttr<I64Attr, "0">:$step,
      DefaultValuedAttr<I64Attr, "0">:$bit, OptionalAttr<I64Attr>:$book);
  let results = (outs Lowlp_TileType:$codes);
  let assemblyFormat = [{
    $words `from` custom<PlacementName>($placement) (`step` $step^)? (`bit` $bit^)? (`book` $book^)? attr-dict `:` type($words) `->` type($codes)
  }];
}

def Lowlp_DecodeOp : Lowlp_PackedWordsOp<"decode", [AttrSizedOperandSegments]> {
  let summary = "fragments out of words of the packed format, by a plan";
  let description = [{
    Carries out a decode plan (docs/decode-plans.md). With the ending `accumulators` the numbers are not yet the weights: a row
    holds `(value of the stored code + offset) * 2^exponent`, with the offset and exponent that the plan gives to the row.

    ```mlir
    %a = lowlp.decode %words {plan = #lowlp.plan<["decode int4.f16 accumulators words 4", ...]>}
      : !lowlp.tile<1x1x128xui32, spatial(1, 1, 32).local(1, 1, 4)>
      -> !lowlp.tile<16x64xf16, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
    ```

    With the ending `unsigned`, of placements for `int8`, the result is `ui8`, and no row has an offset.

    With the ending `weights` they are `scale * (value of the stored code - zero)`, where the difference and the product
    are rounded. `scales` and `zeros` are of the type of the result, hold one number for each row, and are repeated along it
    as `lowlp.broadcast` does. With S times the rows they are of S slices of K, one above the other, as accumulators of
    `lowlp.dot` are.

    ```mlir
    %a = lowlp.decode %words scales %s : !rows zeros %z : !rows
      {plan = #lowlp.plan<["decode int4.f16 weights words 4", ...]>} : !words -> !fragments
    ```

    Warps that share units, of which each takes a tile of 16 rows, decode by the slots of the first tile where all tiles lie
    alike, a rotation or some words apart; the plan's rows must then be the same for each tile.

    Lowers to the plan's instructions (`simt.lop3`, `simt.prmt`, ...), after running every code through it once more.
    Warps that share units rotate their words before.
  }];
  let arguments = (ins Lowlp_TileType:$words, Optional<Lowlp_TileType>:$scales, Optional<Lowlp_TileType>:$zeros,
      Lowlp_PlanAttr:$plan, DefaultValuedAttr<I64Attr, "0">:$step);
  let results = (outs Lowlp_TileType:$fragments);
  let assemblyFormat = [{
    $words (`step` $step^)? (`scales` $scales^ `:` type($scales))? (`zeros` $zeros^ `:` type($zeros))? attr-dict `:` type($words) `->` type($fragments)
  }];
}

def Lowlp_RowConstantsOp : Lowlp_Op<"row_constants", [Pure]> {
  let summary = "a tile whose rows hold constants that repeat";
  let description = [{
    Element (i, j) is `values[(i / 8) mod n]`, of n values for 8 rows each: what a decode plan leaves to be undone on the
    accumulators. A tile of `si32` takes whole numbers.

    ```mlir
    %s = lowlp.row_constants [1.0, 0.0625] : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to constants, as far as a value's rows are the same in all threads.
  }];
  let arguments = (ins DenseF32ArrayAttr:$values);
  let results = (outs Lowlp_TileType:$tile);
  let assemblyFormat = "$values attr-dict `:` type($tile)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPPACKEDOPS_TD
