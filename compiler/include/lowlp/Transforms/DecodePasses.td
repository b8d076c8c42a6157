//===- DecodePasses.td - codes into numbers ----------------*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_DECODEPASSES_TD
#define LOWLP_TRANSFORMS_DECODEPASSES_TD

include "mlir/Pass/PassBase.td"

def FoldScales : Pass<"lowlp-fold-scales", "::lowlp::KernelOp"> {
  let summary = "scale the accumulators of products in place of their weights";
  let description = [{
    A product is linear in its weights. Where a program makes operand a of a `lowlp.dot` of packed codes, cast or looked up,
    by multiplying or adding numbers of which each row has one, such as the scales and zero points of a group, this pass
    multiplies by the codes as they are and does the same to the accumulators, in f32 and in the program's order:

    - `(w * s) * x` becomes `s * (w * x)`: an instruction for each accumulator in place of one for each weight, or two of
      them; and what is cast and no more is decoded by the shortest plans of `lowlp-plan-decode`, which should follow;
    - `(w - z) * x` becomes `w * x - z * (1 * x)`, with the sums of x as a product with a tile of ones.

    Products of one accumulator whose weights are made alike, such as parts of a group along K, are folded together.

    Products are added in another order then, and no weight is rounded after its scale: results differ by roundings. So
    the pass does this only in kernels whose schedule says `reassociate`. With one number other than 0 in a row of x
    they are what the codec says, wherever f32 holds that.

    By default it folds where that takes fewer instructions of a thread, which is for few columns; `when=always`
    does so wherever it can. What is left as it was gets a remark with the reason: a schedule that does not allow it, slices, types that do not hold the codes before
    they are scaled, weights made in other ways, costs.

    Requires: `lowlp-reinterpret-layouts` has made `lowlp.unpack` of loads of packed weights.

    Guarantees: the layouts of accumulators stay; numbers for rows that are held otherwise go through a
    `lowlp.convert_layout`.

    Before:

    ```mlir
    %w = lowlp.cast %codes : !codes -> !halves
    %s = lowlp.broadcast %scales : !column -> !halves
    %a = lowlp.mul %w, %s : !halves
    %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
    ```

    After:

    ```mlir
    %w = lowlp.cast %codes : !codes -> !halves
    %raw = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
    %wide = lowlp.cast %scales : !column -> !column_of_f32
    %s = lowlp.broadcast %wide : !column_of_f32 -> !sum
    %next = lowlp.fma %s, %raw, %acc : !sum
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"when", "when", "std::string", "\"auto\"", "what to fold: auto, where it takes fewer instructions, or always">,
  ];
  let statistics = [
    Statistic<"numFolded", "folded", "products whose accumulators are scaled">,
    Statistic<"numSumsOfX", "sums-of-x", "sums of x that were added">,
    Statistic<"numDeclined", "declined", "products that stayed as they were">,
  ];
}

def PlanDecode : Pass<"lowlp-plan-decode", "::lowlp::KernelOp"> {
  let summary = "decode the weights of products by plans";
  let description = [{
    Where packed codes are cast, or cast and multiplied by a power of two, and are operand a of `lowlp.dot` or
    `lowlp.wgmma`, gives the product words and a decode plan in place of codes: the shortest instructions found for the
    placement at the issue rates of the architecture, and proved on every code.

    A plan's numbers differ from the weights by a power of two and an offset for each row. Both leave the product: with
    `a = (w + offset) * 2^exponent` for a row, `w * x = 2^-exponent * (a * x) - offset * (1 * x)`. The accumulators that a loop
    carries stay in the units of the plan; after the loop they are multiplied once, or what they are multiplied by is,
    if that is one factor of f16 or fewer bits for each row.

    An offset is taken off in one of two places: off the weights, by a sum for each register, which is exact; or off the
    accumulators. Then the loop also carries the sums of x, as products with a tile of ones; sums of x that the program has
    already are used. Products of warpgroups, and all of a kernel whose schedule has `matrix_unit = warpgroup`, have offsets
    taken off the weights; `lowlp.dot` has where that is cheaper, which is for more than 8 columns. The field
    `decode_offsets` of the kernel's schedule comes before the option `offsets`.

    Products are of f16 or bf16, with accumulators in f32, so the powers of two round nothing. Casts that round a weight, that
    are used otherwise, or whose type has no plan, stay as they are.

    Weights that the program scales itself, `cast(codes) * s` or `(cast(codes) - z) * s` in the type of the activations
    with a factor for each row, are decoded by a plan with the ending `weights`, which rounds as the program does.

    Weights that it scales in f32 come from a plan's fragments, cast to f32. Its powers of two go to the column of factors where f32
    is known to hold them times these; or are undone in a multiply-add, if something is subtracted first; or in an operation of
    their own.

    Before:

    ```mlir
    %sum = scf.for ... iter_args(%acc = %zeros) -> (!sum) {
      %q = lowlp.load_packed %v[%row, %k] : !lowlp.packed<4096x4096xui4, "int4.f16"> -> !codes
      %a = lowlp.cast %q : !codes -> !halves
      %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
      scf.yield %next : !sum
    }
    ```

    After, once `lowlp-reinterpret-layouts` has run:

    ```mlir
    %raw = scf.for ... iter_args(%acc = %zeros) -> (!sum) {
      %words = lowlp.load_global ...
      %a = lowlp.decode %words {plan = #lowlp.plan<[...]>} : !words -> !halves
      %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
      scf.yield %next : !sum
    }
    %scale = lowlp.row_constants [1.67772e+07, 1.04858e+06] : !sum
    %sum = lowlp.mul %raw, %scale : !sum
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_90a\"", "the architecture whose issue rates count, such as sm_90a">,
    Option<"offsets", "offsets", "std::string", "\"auto\"", 
           "where a plan's offsets are taken off: weights, accumulators or auto">,
  ];
  let statistics = [
    Statistic<"numPlanned", "planned", "tiles that a plan decodes">,
    Statistic<"numSumsOfX", "sums-of-x", "sums of x that were added">,
  ];
}

def DecomposeBitSlices : Pass<"lowlp-decompose-bit-slices", "::lowlp::KernelOp"> {
  let summary = "look codes up by the slices in which they are packed";
  let description = [{
    Placements of tables pack codes of 3, 5, 6 and 7 bits as slices, in words of their own: 3 = 2 + 1, 5 = 4 + 1, 6 = 4 + 2,
    7 = 4 + 2 + 1 (FLUTE, section 3.1). Where such a `lowlp.unpack` is used by lookups alone, it is split into one for each
    slice, which is a part of the words as it is, and the lookups take the slices: the bits of all of them meet in the
    address. A table of pairs is then filled in the order that the slices give it.

    An unpacked tile that other ops use stays whole, as does one whose pairs are looked up in a table that not all
    lookups use with the same slices: `lowlp.unpack` puts the bits of such codes together by shifts.

    Before:

    ```mlir
    lowlp.expand_table %plain, %pairs : !lowlp.shared<8xf16>, !lowlp.shared<64x32x2xf16>
    %codes = lowlp.unpack %words from "lut3.f16" : !words -> !lowlp.tile<16x64xui3, ...>
    %w = lowlp.lookup_pairs %pairs, %codes : !lowlp.shared<64x32x2xf16>, !lowlp.tile<16x64xui3, ...> -> !values
    ```

    After:

    ```mlir
    lowlp.expand_table %plain, %pairs slices [2, 1] : !lowlp.shared<8xf16>, !lowlp.shared<64x32x2xf16>
    %low = lowlp.unpack %words from "lut3.f16" : !words -> !lowlp.tile<16x64xui2, ...>
    %high = lowlp.unpack %words from "lut3.f16" bit 2 : !words -> !lowlp.tile<16x64xui1, ...>
    %w = lowlp.lookup_pairs %pairs, %low, %high : !lowlp.shared<64x32x2xf16>, !lowlp.tile<16x64xui2, ...>,
      !lowlp.tile<16x64xui1, ...> -> !values
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "split", "unpacked tiles split into slices">,
    Statistic<"numSlices", "slices", "slices that these became">,
  ];
}

def VectorizeLookups : Pass<"lowlp-vectorize-lookups", "::lowlp::KernelOp"> {
  let summary = "look up two codes at once, in copies of a table that are spread over the banks";
  let description = [{
    Takes each `lowlp.lookup` of one tile of codes `ui1` to `ui8` in a shared tile of one dimension that holds `f16` or `bf16`, and
    chooses between (FLUTE, section 3.2):

    - pairs: codes of 1 to 6 bits, of which each thread holds an even number, by `lowlp.lookup_pairs`. The table has 4^b
      words of 32 bits;
    - entries: `lowlp.lookup`, in the plain table, or in one with copies where that has more words than there are banks,
      which is for codes of 7 and 8 bits;
    - registers: `lowlp.lookup` of codes of 1 bit in the plain table, between whose two entries masks choose.

    The new table is filled by `lowlp.expand_table` once, before the first lookup and the loops around it that do not
    write the plain table, between barriers.

    A table of W words, of which C copies lie side by side, costs a warp that looks random codes up so many passes of
    the banks: the fewer of W C / 32, the words of a copy that a bank has, and the most lanes of 32 / C that are expected
    to meet in one of 32 / C banks; 1 at least. In cycles of a warp, a lookup of a pair costs its passes and half the
    instructions of its address: a shift and a `lop3`, or, where its codes are packed in slices of 4, 2 and 1 bits, those
    that put slices together and take an index out (`ByteIndices`), of which there is one where the address has the index
    within a byte. Two entries cost twice that and half for joining them, and 2 more where up to 32 copies of two entries
    share words; a pair of 1 bit in registers costs 1.25; filling a table 12 for each word that a thread stores, in up to
    four copies. A loop of unknown length is taken to run 32 times. Of the forms and numbers of copies that are
    allowed, the one of fewest bytes is taken among those that cost at most a tenth more than the cheapest.

    `form` allows only one of them; `copies` sets the number of copies, a power of two up to 32. With
    `copies=0` there may be 64, and of entries 128, which leaves some of them unread but spares instructions; and the new tables of a kernel take at most 48 KiB, and all its tiles of shared memory together at most 227 KiB.

    A lookup stays as it is where it has another type, where the table has not an entry for every code, where other ops
    than stores, `lowlp.copy_async` and loads use the table, and where the table is written again after the first lookup.

    Guarantees: the kernel computes the same. The entry `lookups` of the kernel's `lowlp.report` says what was decided.

    Before:

    ```mlir
    lowlp.synchronize
    scf.for %k = %c0 to %n step %c1 {
      %w = lowlp.lookup %table, %codes : !lowlp.shared<16xf16>, !codes -> !values
    }
    ```

    After:

    ```mlir
    lowlp.synchronize
    %pairs = lowlp.alloc_shared : !lowlp.shared<256x32x2xf16>
    lowlp.expand_table %table, %pairs : !lowlp.shared<16xf16>, !lowlp.shared<256x32x2xf16>
    lowlp.synchronize
    scf.for %k = %c0 to %n step %c1 {
      %w = lowlp.lookup_pairs %pairs, %codes : !lowlp.shared<256x32x2xf16>, !codes -> !values
    }
    ```
  
    The fields `table_form` and `table_copies` of the kernel's schedule come before the options.
  }];
  let options = [
    Option<"form", "form", "std::string", /*default=*/"\"auto\"", "how codes are looked up: pair, entry, register or auto">,
    Option<"copies", "copies", "unsigned", /*default=*/"0", "copies of each new table; 0 chooses">,
  ];
  let statistics = [
    Statistic<"numPairs", "pair-lookups", "lookups of two codes at once">,
    Statistic<"numCopied", "copied-lookups", "lookups of one code in a table with copies">,
    Statistic<"numBytes", "bytes", "bytes of new tables">,
  ];
}

def FloatSums : Pass<"lowlp-float-sums", "::lowlp::KernelOp"> {
  let summary = "let sums of few products of bytes be f32 without a conversion";
  let description = [{
    Where products of bytes are added to zeros, and a `lowlp.cast` makes the sums f32, lets them begin at the bits of 1.5 x 2^23
    in place of 0. Bits of the sums are then those of that number plus the sum, which a subtraction takes off again, exactly:
    additions of f32 are twice as fast as conversions (CUDA C++ Programming Guide, "Arithmetic Instructions", compute capability
    9.0). The sums must be used by the cast alone, and no such sum can reach 2^22: of signed bytes up to 255 products.

    Should follow `lowlp-use-warpgroups`: instructions of warpgroups begin at zeros without registers for them, so that their
    sums are left as they are. A sum of products that is left gets a remark with the reason; a sum of which something else was
    taken first, such as zero points times sums of x, is none.

    Guarantees: values are the same.

    Before:

    ```mlir
    %zeros = lowlp.splat %c0_i32 : i32 -> !integers
    %raw = lowlp.dot %w, %x, %zeros : !weights, !x, !integers
    %sum = lowlp.cast %raw : !integers -> !floats
    ```

    After:

    ```mlir
    %bits = lowlp.splat %c1262485504_i32 : i32 -> !integers
    %raw = lowlp.dot %w, %x, %bits : !weights, !x, !integers
    %seen = lowlp.view %raw : !integers -> !floats
    %value = lowlp.splat %cst : f32 -> !floats
    %sum = lowlp.sub %seen, %value : !floats
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numSums", "sums", "casts of sums that became subtractions">,
  ];
}

#endif // LOWLP_TRANSFORMS_DECODEPASSES_TD
