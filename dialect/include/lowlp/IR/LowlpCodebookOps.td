//===- LowlpCodebookOps.td - vectors named by codes -----------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPCODEBOOKOPS_TD
#define LOWLP_IR_LOWLPCODEBOOKOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_LoadCodebookOp : Lowlp_Op<"load_codebook", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "take a codebook into its cache";
  let description = [{
    The codebook that begins at `offsets` of a view, one for each leading dimension: the view's last dimensions are the
    codebook's, [books,] entries and values, side by side in memory (VQ-LLM, section V: Load). The book must lie in the view,
    which the CPU target checks, and nobody may write it as long as it is used.

    All threads of the block come here together: they fill the cache and wait for each other. Nothing else has to be waited for
    before `lowlp.lookup_vectors`.

    The view's books may also lie side by side, entry by entry: strides [v, books * v, 1]. Then `cache` has all entries in shared
    memory. With `asynchronous` that is one group of asynchronous copies, which nobody has waited for: before the first lookup
    stand a `lowlp.copy_async_wait` for the group and a `lowlp.synchronize`.

    Without a `placed` shared tile all entries stay in global memory. `lowlp-place-codebooks` decides which part goes where: it
    gives the op the tile, its result a type with a `#lowlp.codebook_cache`, and the op an `estimate` that says why. `cache` asks
    it for this one. `frequencies` are the accesses of each entry, summed over the books, which must not increase:
    entries are stored in the order of their accesses, most first. `spread` says that codes were chosen for entries with one copy
    in shared memory, which are then given no more: lanes that look up together take so many hundredths of a pass.

    ```mlir
    %book = lowlp.load_codebook %view[%i, %j] : !lowlp.global<?x?x2x256x8xf16> -> !lowlp.codebook<2x256x8xf16>
    ```

    Lowers to `simt.load` and `simt.store` between two barriers; with `asynchronous` to `simt.copy_async` of 16 bytes.
  }];
  let arguments = (ins Lowlp_GlobalType:$source, Variadic<Index>:$offsets, Optional<Lowlp_SharedType>:$tile,
      OptionalAttr<Lowlp_CodebookCacheAttr>:$cache, OptionalAttr<DenseI64ArrayAttr>:$frequencies,
      OptionalAttr<I64Attr>:$spread, OptionalAttr<Lowlp_CacheEstimateAttr>:$estimate, UnitAttr:$asynchronous);
  let results = (outs Lowlp_CodebookType:$codebook);
  let assemblyFormat = [{
    $source `[` $offsets `]` (`asynchronous` $asynchronous^)? (`placed` $tile^ `:` type($tile))? (`cache` $cache^)?
    (`frequencies` $frequencies^)? (`spread` $spread^)? (`estimate` $estimate^)? attr-dict `:` type($source) `->`
    type($codebook)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether books lie side by side in the view, entry by entry. Requires: the op is valid.
    bool isInLines();
  }];
}

def Lowlp_SwitchCodebookOp : Lowlp_Op<"switch_codebook", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
    AllTypesMatch<["codebook", "result"]>]> {
  let summary = "change to another codebook of the same shape";
  let description = [{
    The cache gets another codebook (VQ-LLM, section V: Switch), which begins at `offsets` of a view, as for
    `lowlp.load_codebook`: the codebook of the next block of weights, say. All threads of the block come here together; no
    barrier has to stand before or after. The codebook before is gone: its value must not be used after this op, nor
    again by a loop around it, which carries the codebook instead.

    `entries` are what the view has there, loaded before: a tile whose row `b * entries + e` is entry `e` of book `b`, each row
    whole in a thread; rows after the last entry count for nothing. Then nobody waits for memory here. What the cache keeps out of
    shared memory comes from the view all the same.

    ```mlir
    %last = scf.for %k = %c0 to %n step %c1 iter_args(%book = %first) -> (!book) {
      %next = scf.if %is_new -> (!book) {
        %other = lowlp.switch_codebook %book to %view[%i, %k] : !lowlp.global<?x?x2x256x8xf16>, !book
        scf.yield %other : !book
      } else {
        scf.yield %book : !book
      }
      scf.yield %next : !book
    }
    ```

    Lowers to `simt.load` and `simt.store` between two barriers.
  }];
  let arguments = (ins Lowlp_CodebookType:$codebook, Lowlp_GlobalType:$source, Variadic<Index>:$offsets,
      Optional<Lowlp_TileType>:$entries);
  let results = (outs Lowlp_CodebookType:$result);
  let assemblyFormat = [{
    $codebook `to` $source `[` $offsets `]` (`entries` $entries^ `:` type($entries))? attr-dict
    `:` type($source) `,` type($codebook)
  }];
  let hasVerifier = 1;
}

def Lowlp_LookupVectorsOp : Lowlp_Op<"lookup_vectors", [MemoryEffects<[MemRead]>, Lowlp_LayoutTransfer]> {
  let summary = "the vectors of a codebook that a tile of codes names";
  let description = [{
    Each code, an unsigned integer, becomes the `v` values of an entry, which take its place along dimension `along`
    (VQ-LLM, section V: Access): codes [rows, K / v] become values [rows, K] with `along 1`, and codes [K / v, columns] become
    values [K, columns] with `along 0`. Nothing moves between threads: the layout of the result is that of the codes, times
    `local(1, v)` or `local(v, 1)`.

    **Matrices.** Entries of 16 bytes that are all in shared memory, of `f16` or `bf16`, may also come as matrices of 8 entries, each of
    which one lane finds and four lanes get (PTX ISA, `ldmatrix`): of codes held as `column_spatial(16, 2)` the values are
    then held as `column_local(2, 2).spatial(8, 4).local(1, 2)`, an operand of `lowlp.dot` in the usual order of K.
    `lowlp-expand-exchanges` makes such lookups of a lookup and a `lowlp.convert_layout`.

    `book` is the number of the book. With `book_along d` each index along dimension `d` of the codes has a book of its own:
    code c at index j is looked up in book `book` + j. `staggered [r, m0, m1, ...]` exchanges the books of neighbours by the index i along
    dimension `r`: the book is `book` + (j xor x), of which bit b of x is the parity of `i & mb`. So lanes that read the
    same columns of different rows read different books, which lie in different banks. Without `book_along` the book is `book` xor
    x: so lanes that have columns side by side read books of their own.

    `part` names the leading indices of a larger tile of codes: of codes [4, 2, 16, 4], `[3, 0]` takes the 16 x 4 from [3, 0]
    on. Every thread must hold that part; its registers are read where they are. So codes are loaded widely, and looked up step
    by step.

    The values have the type of the entries; `lowlp.cast` makes `f16` or `bf16` of `si8` and `f8E4M3FN`, which is exact.

    Every code must name an entry: the CPU target reports one that does not.

    ```mlir
    %w = lowlp.lookup_vectors %codes in %book[1] along 1
      : !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>, !lowlp.codebook<2x256x8xf16>
      -> !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
    ```

    That result is an operand of `lowlp.dot`: 8 values of a lane are the fragments of two steps, in an order of K that the
    other operand has too.

    Lowers to one `simt.load` of up to 16 bytes a code. From a line of 256 bytes, one `simt.prmt` makes the address of a code of 8
    bits.
  }];
  let arguments = (ins Lowlp_TileType:$codes, Lowlp_CodebookType:$codebook, I64Attr:$book, I64Attr:$along,
      OptionalAttr<I64Attr>:$book_along, OptionalAttr<DenseI64ArrayAttr>:$staggered,
      OptionalAttr<DenseI64ArrayAttr>:$part);
  let results = (outs Lowlp_TileType:$result);
  let assemblyFormat = [{
    $codes (`part` $part^)? `in` $codebook `[` $book `]` `along` $along (`book_along` $book_along^)?
    (`staggered` $staggered^)? attr-dict
    `:` type($codes) `,` type($codebook) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The values of a code.
    int64_t getVectorLength() { return getCodebook().getType().getVectorLength(); }
    /// The book of the code at an index of the part. Requires: the op is valid.
    int64_t getBookOf(::llvm::ArrayRef<int64_t> index);
    /// How the part of the codes is held. Requires: the op is valid.
    Layout getPartLayout();
    /// The registers of the codes that are looked up, in the order of the part's local index. Requires: the op is valid.
    ::llvm::SmallVector<int64_t> getPartLocals();
    /// For each `ldmatrix` of 4, 2 or 1 registers of a tile held as `result` the local index in the part of the codes whose entries
    /// it gathers; nothing where matrices do not make such a tile. Requires: the op is valid but for its result.
    ::std::optional<::llvm::SmallVector<int64_t>> findMatrices(const Layout &result);
  }];
}

#endif // LOWLP_IR_LOWLPCODEBOOKOPS_TD
