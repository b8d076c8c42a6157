//===- LowlpControlOps.td - promises, output, early end -------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPCONTROLOPS_TD
#define LOWLP_IR_LOWLPCONTROLOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_AssumeOp : Lowlp_Op<"assume", [MemoryEffects<[MemWrite]>]> {
  let summary = "a promise that a condition holds";
  let description = [{
    The CPU target checks it, and ends the launch with the message where it does not hold. On a GPU it costs nothing.

    ```mlir
    lowlp.assume %fits, "the row must fit into one tile"
    ```

    Lowers to `simt.assert`.
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

def Lowlp_AssumeDivisibleOp : Lowlp_Op<"assume_divisible", [Pure, SameOperandsAndResultType]> {
  let summary = "a number of which a divisor is promised";
  let description = [{
    The operand, of which accesses know from here on that it is a multiple of the divisor: offsets and strides made of
    it may be accessed in wider steps. The CPU target checks the promise.

    ```mlir
    %aligned = lowlp.assume_divisible %offset by 8
    ```

    Lowers to `simt.assert` and the operand.
  }];
  let arguments = (ins Index:$value, ConfinedAttr<I64Attr, [IntPositive]>:$divisor);
  let results = (outs Index:$result);
  let assemblyFormat = "$value `by` $divisor attr-dict";
}

def Lowlp_PrintOp : Lowlp_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "write a line of text and numbers";
  let description = [{
    One thread of the first block writes the text with a value in place of each `{}`, and ends the line (Tilus, table 1:
    Print); `all_blocks` lets one thread of every block do it. The CPU target writes to standard output; so does a GPU,
    when the host synchronises next. The order of lines of several blocks is open. Values are `index`, `i1`, `i32`,
    `i64` and `f32`; floats are written with six digits.

    ```mlir
    lowlp.print "step {}: largest {}" %k, %m : index, f32
    ```

    Lowers to `gpu.printf`.
  }];
  let arguments = (ins StrAttr:$format, Variadic<AnyTypeOf<[Index, I1, I32, I64, F32]>>:$values, UnitAttr:$all_blocks);
  let assemblyFormat = "$format ($values^ `:` type($values))? (`all_blocks` $all_blocks^)? attr-dict";
  let hasVerifier = 1;
}

def Lowlp_PrintTileOp : Lowlp_Op<"print_tile", [MemoryEffects<[MemWrite]>]> {
  let summary = "write the elements of a tile";
  let description = [{
    For each element a line with the label, its index and its value, `sums[3, 1] = 0.5`, by the first thread that holds
    it; in the first block alone, or with `all_blocks` in every block. See `lowlp.print` for where lines go. Their order
    is open, since nothing waits for anything.

    ```mlir
    lowlp.print_tile "sums", %acc : !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `gpu.printf`.
  }];
  let arguments = (ins StrAttr:$label, Lowlp_TileType:$tile, UnitAttr:$all_blocks);
  let assemblyFormat = "$label `,` $tile (`all_blocks` $all_blocks^)? attr-dict `:` type($tile)";
}

def Lowlp_FirstThreadOp : Lowlp_Op<"first_thread", [SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "what the first thread does alone";
  let description = [{
    The other threads go past it at once. In it stand `arith` on scalars, `scf.if` and `scf.for`, and what one thread can
    do: waits for mbarriers and for the launch before, announced bytes, bulk and tensor copies, and promises.

    ```mlir
    lowlp.first_thread {
      lowlp.mbarrier_wait %empty[%stage] parity %round : !lowlp.mbarriers<3>
      lowlp.mbarrier_expect_bytes %full[%stage] bytes 8192 : !lowlp.mbarriers<3>
      lowlp.copy_bulk %a[%i, %k] to %s[%stage, %c0, %c0] shape [16, 256] signals %full[%stage] ...
    }
    ```

    Lowers to a branch on the thread index.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasRegionVerifier = 1;
}

def Lowlp_ProducerWarpOp : Lowlp_Op<"producer_warp", [SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "what one more warp does beside the others";
  let description = [{
    The block is launched with a warp more than `num_threads`, whose first thread runs the region and then ends, while the
    other warps go on after the op. It begins at once, and makes the mbarriers that stand before the op; the others wait
    here until it has. From then on `lowlp.synchronize`, and all else that the block does together, is without that warp;
    mbarriers bring the two together. A kernel has at most one, in its
    own body, with nothing before it that a tile or a loop is part of. In it stands what may stand in
    `lowlp.first_thread`.

    ```mlir
    lowlp.producer_warp {
      scf.for %i = %c0 to %n step %c1 {
        lowlp.mbarrier_wait %empty[%stage] parity %round : !lowlp.mbarriers<3>
        lowlp.mbarrier_expect_bytes %full[%stage] bytes 8192 : !lowlp.mbarriers<3>
        ...
      }
    }
    ```

    Lowers to a branch on the thread index, which begins with `simt.leave_barriers` and ends in `simt.exit`, and a barrier
    after it. On the CPU target, a barrier of the
    other warps counts as one of the producer too when accesses are checked for races.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Lowlp_ExitOp : Lowlp_Op<"exit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "end the block here";
  let description = [{
    All threads of the block leave the kernel (Tilus, table 1: Exit), out of as many loops and branches as there are.
    Control flow of a block is the same in all its threads, so none is left behind at a barrier. What follows in the
    same region does not run.

    ```mlir
    scf.if %nothing_to_do {
      lowlp.exit
    }
    ```

    Lowers to `simt.exit`.
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPCONTROLOPS_TD
