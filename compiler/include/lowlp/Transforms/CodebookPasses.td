//===- CodebookPasses.td - caches of codebooks -------------*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_CODEBOOKPASSES_TD
#define LOWLP_TRANSFORMS_CODEBOOKPASSES_TD

include "mlir/Pass/PassBase.td"

def PlaceCodebooks : Pass<"lowlp-place-codebooks", "::lowlp::KernelOp"> {
  let summary = "decide which entries of codebooks are in registers, shared and global memory";
  let description = [{
    Gives each `lowlp.load_codebook` and all that its codebook goes through a type with a `#lowlp.codebook_cache`, and
    the op its tile of shared memory. A `cache` that the op asks for is taken as it is. Else the field `codebooks` of the kernel's
    schedule decides, by the names of VQ-LLM's table IV:

    | codebooks  | registers | shared memory |
    |------------|-----------|---------------|
    | `gc`       | none      | none |
    | `sc`       | none      | all entries, in one copy; an error where they do not fit |
    | `o1`       | none      | as many as fit, in one copy |
    | `o2` to `o4` | those more frequent than the mean and three standard deviations, up to 8 | as `o1` |
    | `auto`     | none      | all where they fit, in copies; else the most frequent where frequencies are known |

    A warp reads shared memory in phases of 8 lanes for entries of 16 bytes, 16 of 8 and 32 of 4. Lanes of a phase that read one
    book meet in banks, unless each reads a copy of its own. So `auto` wants as many copies as a phase has lanes, divided by the
    books that it reads, which the layouts of the lookups say; fewer where these do not fit, if that is expected to take fewer
    passes. Without conflicts each line has an entry of all books, and of 256 bytes where these fit and codes have 8 bits, so that a
    code is a byte of the address; else books lie one after the other, each in all banks. Entries that do not
    all fit are as fast in the L1 cache as in shared memory, unless their frequencies differ: then those that come first,
    as many as fit, are in shared memory if they get half as many accesses again as others would.

    What fits is what the architecture gives a block, or as many as `blocks_per_sm` says, less all other tiles and the largest
    tile that may be exchanged through shared memory.

    Requires: no codebook has a cache yet.

    Guarantees: the kernel computes the same. Each `lowlp.load_codebook` has an `estimate`, and the entry `codebooks` of
    the kernel's `lowlp.report` tells it in words.

    Before:

    ```mlir
    %book = lowlp.load_codebook %view[] : !lowlp.global<2x256x8xf16> -> !lowlp.codebook<2x256x8xf16>
    ```

    After:

    ```mlir
    %tile = lowlp.alloc_shared : !lowlp.shared<65536xui8>
    %book = lowlp.load_codebook %view[] placed %tile : !lowlp.shared<65536xui8> estimate <register_hits = 0,
        shared_hits = 1000, ...> : !lowlp.global<2x256x8xf16>
      -> !lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 256, book_bytes = 128>>
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"", "the architecture whose shared memory is used, such as sm_90a; "
      "the largest of all if left out">,
  ];
  let statistics = [
    Statistic<"numCodebooks", "codebooks", "codebooks with entries in shared memory or registers">,
    Statistic<"numBytes", "bytes", "bytes of shared memory for codebooks">,
  ];
}

#endif // LOWLP_TRANSFORMS_CODEBOOKPASSES_TD
