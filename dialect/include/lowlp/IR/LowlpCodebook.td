//===- LowlpCodebook.td - codebooks and their caches ----------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPCODEBOOK_TD
#define LOWLP_IR_LOWLPCODEBOOK_TD

include "lowlp/IR/LowlpDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Lowlp_CodebookCacheAttr : AttrDef<LowlpDialect, "CodebookCache"> {
  let mnemonic = "codebook_cache";
  let summary = "where the entries of a codebook are kept";
  let description = [{
    The codebook cache of VQ-LLM (section V): by two boundaries, entries are kept at three levels. Entry `e` of each book is
    read from

    | e                        | from          |
    |--------------------------|---------------|
    | below `registers`        | registers: every thread holds these entries |
    | below `shared`, the rest | shared memory |
    | all others               | global memory |

    So the entries that are read most often should come first. In shared memory copy c of entry e of book b lies at byte

    ```
    e * line_bytes + b * book_bytes + c * bytes of an entry
    ```

    of c up to `copies`. Books lie within the lines, in each line an entry of all books, or one after the other, each with all
    of its lines. Lanes of one phase (8 lanes of 16 bytes, 16 of 8 or 32 of 4) that read one book read different copies, so that
    as many copies as there are such lanes meet in no bank; books within lines are for that. With fewer copies entries should
    spread over all banks: then books lie one after the other. In a line of 256 bytes a code of 8 bits is a byte of the address.

    ```mlir
    !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 256, book_bytes = 128>>
    !lowlp.codebook<2x4096x8xf16, #lowlp.codebook_cache<shared = 4096, line_bytes = 16, book_bytes = 65536>>
    ```
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "0", "entries of each book in the registers of every thread, 0 to 8">:$registers,
    AttrParameter<"int64_t", "entries of each book up to which they are in shared memory">:$shared,
    DefaultValuedParameter<"int64_t", "1", "of each entry in shared memory, a power of two up to 32">:$copies,
    DefaultValuedParameter<"int64_t", "0", "from an entry to the next in shared memory">:$line_bytes,
    DefaultValuedParameter<"int64_t", "0", "from a book to the next, where there are several">:$book_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Registers can only be named, so that each costs a comparison.
    static constexpr int64_t kMaxRegisterEntries = 8;
    /// One for each lane of a warp.
    static constexpr int64_t kMaxCopies = 32;
    /// Whether each line has an entry of all books.
    bool areBooksInLines() const { return getBookBytes() < getLineBytes(); }
  }];
}

def Lowlp_CacheEstimateAttr : AttrDef<LowlpDialect, "CacheEstimate"> {
  let mnemonic = "cache_estimate";
  let summary = "what a codebook's cache is expected to do, and why it was chosen";
  let description = [{
    What `lowlp-place-codebooks` leaves on a `lowlp.load_codebook`, for people to read. Of 1000 lookups,
    `register_hits`, `shared_hits` and `global_hits` find their entry at each level. `bank_passes` are the passes that a phase of
    lanes takes in shared memory on the average, in hundredths: 100 is without conflicts. `fill_bytes` is what a block reads
    from global memory to fill the cache, `gather_bytes` what 1000 lookups read from there, in sectors of 32 bytes.

    ```mlir
    #lowlp.cache_estimate<register_hits = 0, shared_hits = 1000, global_hits = 0, bank_passes = 100, fill_bytes = 8192,
      gather_bytes = 0, reason = "all entries fit">
    ```
  }];
  let parameters = (ins "int64_t":$register_hits, "int64_t":$shared_hits, "int64_t":$global_hits,
    "int64_t":$bank_passes, "int64_t":$fill_bytes, "int64_t":$gather_bytes, "::mlir::StringAttr":$reason);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // LOWLP_IR_LOWLPCODEBOOK_TD
