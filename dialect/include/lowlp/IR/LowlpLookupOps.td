//===- LowlpLookupOps.td - tables in shared memory ------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPLOOKUPOPS_TD
#define LOWLP_IR_LOWLPLOOKUPOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_LookupOp : Lowlp_Op<"lookup", [MemoryEffects<[MemRead]>, Lowlp_LayoutTransferInterface]> {
  let summary = "the entries of a table that a tile of codes names";
  let description = [{
    Element by element: a code c, an integer of any width, becomes entry c of the table, a shared tile of any element
    type (FLUTE: weights are indices into a lookup table). The codes' layout is the result's.

    A table of two dimensions holds copies, entry c of copy k at (c, k): thread t reads copy t mod C of C, a power of two
    up to 32. Which banks of shared memory a copy lies in is the layout's affair. For 2^b entries of 16 bits,
    `local(2^(b-1), C).local(2, 1)` gives each of 32 copies a bank of its own. Of `f16` and `bf16` there may be 64 or 128 copies:
    thread t then reads copy 2 (t mod 32), so that with `local(2^b, C)` each lane has a word of 32 bits in each line of
    2 C bytes. A line of 128 bytes for each entry spares the split of the code; of 256 bytes, the code is a byte of the address.

    The codes may come in slices, as for `lowlp.lookup_pairs`: several tiles of unsigned integers in one layout, the low
    bits first. All extents of the table are powers of two then, and it has an entry for every code.

    Every code must name an entry: the CPU target reports one that does not.

    ```mlir
    %w = lowlp.lookup %table, %codes : !lowlp.shared<16xf16>, !lowlp.tile<16x8xui4, ...> -> !lowlp.tile<16x8xf16, ...>
    ```

    Lowers to `simt.load`, an element at a time.
  }];
  let arguments = (ins Lowlp_SharedType:$table, Variadic<Lowlp_TileType>:$slices);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$table `,` $slices attr-dict `:` type($table) `,` type($slices) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_LookupPairsOp : Lowlp_Op<"lookup_pairs", [MemoryEffects<[MemRead]>]> {
  let summary = "the entries of a table that a tile of codes names, two at a time";
  let description = [{
    As `lowlp.lookup`, for codes of b = 1 to 6 bits and values of `f16` or `bf16`, but a thread looks its elements 2p and
    2p + 1 up together (FLUTE, section 3.2): the table holds the two values of every pair of codes side by side, in C
    copies, as a shared tile of 4^b x C x 2. Thread t reads copy t mod C, a power of two up to 32. With 32 copies each
    lane of a warp has a bank of its own. With 64 it reads copy t mod 32, and the pair is a byte of the address.

    The codes may come in slices (FLUTE, section 3.1): of codes of 3 bits one tile may hold the low 2 bits and another
    the high one, all in one layout. The index of a pair is made of the slices from the first on, its low bits first; of
    each slice, the bits of element 2p come before those of element 2p + 1:

        ui4             index = c(2p) + 16 c(2p + 1)
        ui2, ui1        index = l(2p) + 4 l(2p + 1) + 16 h(2p) + 32 h(2p + 1),   c = l + 4 h

    So the bits of a pair need not be put together first. `lowlp.expand_table` fills such a table.

    ```mlir
    %w = lowlp.lookup_pairs %table, %codes : !lowlp.shared<256x32x2xf16>, !lowlp.tile<16x8xui4, ...>
      -> !lowlp.tile<16x8xf16, ...>
    %v = lowlp.lookup_pairs %other, %low, %high : !lowlp.shared<64x32x2xf16>, !lowlp.tile<16x8xui2, ...>,
      !lowlp.tile<16x8xui1, ...> -> !lowlp.tile<16x8xf16, ...>
    ```

    Lowers to one `simt.load` of 32 bits a pair. The bits of a pair go to their place in the address by one shift and
    one mask, because all extents are powers of two. Slices are put together before, in bytes of words.
  }];
  let arguments = (ins Lowlp_SharedType:$table, Variadic<Lowlp_TileType>:$slices);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = "$table `,` $slices attr-dict `:` type($table) `,` type($slices) `->` type($result)";
  let hasVerifier = 1;
}

def Lowlp_ExpandTableOp : Lowlp_Op<"expand_table", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "fill a table of copies or pairs from a plain one";
  let description = [{
    All threads of the block together fill `expanded` from `table`, which holds entry c at c: with copies for
    `lowlp.lookup` if it has two dimensions, with pairs for `lowlp.lookup_pairs` if it has three. For pairs, `slices` are
    the widths of the slices in which their codes come; left out, there is one.

    What other threads have written to `table` must be visible, so a `lowlp.synchronize` stands before, and another one
    between this op and the first lookup.

    ```mlir
    lowlp.synchronize
    lowlp.expand_table %table, %pairs slices [2, 1] : !lowlp.shared<8xf16>, !lowlp.shared<64x32x2xf16>
    lowlp.synchronize
    ```

    Lowers to a loop that reads two entries with `simt.load` and writes them with `simt.store`, to up to four copies at
    once.
  }];
  let arguments = (ins Lowlp_SharedType:$table, Lowlp_SharedType:$expanded,
      OptionalAttr<DenseI64ArrayAttr>:$slices);
  let assemblyFormat = [{
    $table `,` $expanded (`slices` $slices^)? attr-dict `:` type($table) `,` type($expanded)
  }];
  let hasVerifier = 1;
}

def Lowlp_AddLookupsOp : Lowlp_Op<"add_lookups", [MemoryEffects<[MemRead]>, AllTypesMatch<["sums", "result"]>]> {
  let summary = "add what codes name, each in the table of its column";
  let description = [{
    Codes [rows, columns] name entries of as many tables of `f32`: the table is a shared tile of entries by columns, which may be
    several dimensions, in row-major order, and code c of column j names `table[c, column + j]`. What a thread's codes of a row name is
    added to its element of that row in `sums`, one after the other, in an order that the layout of the codes fixes. So a tile of sums is held as the
    codes are, without what a thread holds along the columns: codes `local(4, 1).spatial(8, 4).local(1, 8)` have sums
    `local(4, 1).spatial(8, 4)`, and `lowlp.reduce` makes whole rows of them.

    Where an entry of each column is a product of x and a vector of a codebook, the sums are products of x and rows of weights, made
    without one multiplication a weight (partial sums of codewords: CodeGEMM, LUT-GEMM).

    ```mlir
    %next = lowlp.add_lookups %codes in %table[%c32], %sums
      : !lowlp.tile<16x32xui8, spatial(8, 4).local(2, 8)>, !lowlp.shared<256x2x32xf32>,
        !lowlp.tile<16x4xf32, spatial(8, 4).local(2, 1)>
    ```

    Every code must name an entry: the CPU target reports one that does not.

    Lowers to one `simt.load` of 32 bits a code. Lanes that hold the same columns of other rows take their codes of 8 bits in another order each, if
    they can, so that they read other columns at a time, which lie in other banks: one selection for two codes. In
    lines of 256 bytes a code is byte 1 of the address and the column byte 0, and `simt.select_bytes` makes both.
  }];
  let arguments = (ins Lowlp_TileType:$codes, Lowlp_SharedType:$table, Index:$column, Lowlp_TileType:$sums);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = [{
    $codes `in` $table `[` $column `]` `,` $sums attr-dict `:` type($codes) `,` type($table) `,` type($sums)
  }];
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPLOOKUPOPS_TD
