//===- SimtWgmmaOps.td - matrix instructions of a warpgroup -----*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTWGMMAOPS_TD
#define LOWLP_IR_SIMTWGMMAOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_AccumulatorsType : TypeDef<SimtDialect, "Accumulators"> {
  let mnemonic = "accumulators";
  let summary = "accumulators that a warpgroup's products in flight are still changing";
  let description = [{
    The registers of one thread, of which nothing can be said before `simt.wgmma_wait` gives them back as a vector: so a
    program cannot read them too early. A value has one use, since a second one would need a copy of registers that
    change. Example: `!simt.accumulators<vector<32xf32>>`.
  }];
  let parameters = (ins "::mlir::VectorType":$vector);
  let assemblyFormat = "`<` $vector `>`";
}

def Simt_AccumulatorsVector : VectorOfLengthAndType<
    [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112,
     116, 120, 124, 128], [F32, I32]>;

def Simt_WgmmaFenceOp : Simt_Op<"wgmma_fence", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["values", "fenced"]>]> {
  let summary = "let a warpgroup's products take these registers";
  let description = [{
    What `simt.wgmma` takes of registers, which other instructions have written, passes through here before (PTX ISA,
    `wgmma.fence.sync.aligned`). All threads of the warp must arrive together. Each group of products begins with one;
    the CPU target reports a product without.

    ```mlir
    %f:2 = simt.wgmma_fence of %a, %c : vector<8xf16>, vector<32xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyVectorOfNonZeroRank>:$values);
  let results = (outs Variadic<AnyVectorOfNonZeroRank>:$fenced);
  let assemblyFormat = "(`of` $values^ `:` type($values))? attr-dict";
  let hasVerifier = 1;
}

def Simt_WgmmaOp : Simt_Op<"wgmma", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin a warpgroup's matrix multiply and accumulate";
  let description = [{
    `d = a * b + c` over the 128 threads of a warpgroup, which are four warps from a multiple of four on and must all
    arrive here: `wgmma.mma_async.sync.aligned` with 64 x K by K x N. Warp w of the four has rows 16 w to 16 w + 15; each
    thread gives 4 registers of `a`, in the order of the fragment of `simt.mma`, and has N / 2 accumulators, 4 for each 8
    columns in the order of that fragment (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", "k32" and "k256").
    Without `plus` the accumulators begin at zero.

    | Elements of a and b                          | a               | K   | Accumulators | N                                       |
    |----------------------------------------------|-----------------|-----|--------------|-----------------------------------------|
    | `f16`, `bf16`                                | `vector<8xf16>` | 16  | `f32`        | multiples of 8 to 256                   |
    | `f8E4M3FN` or `f8E5M2`, each                 | `vector<4xi32>` | 32  | `f32`        | multiples of 8 to 256                   |
    | `si8` or `ui8`, each                         | `vector<4xi32>` | 32  | `i32`        | 8, 24, and multiples of 16 to 256       |
    | `ui1`, whose product is the bitwise and      | `vector<4xi32>` | 256 | `i32`        | 8, 24, and multiples of 16 to 256       |

    `b` lies in shared memory, K innermost: N rows of 32 bytes, of which 8 make a group. With `swizzle` 0, chunk j of 16
    bytes of row r of group g lies at `j * leading + g * stride + 16 r`; with a swizzle of S = 32, 64 or 128 bytes at
    `g * stride + S r + 16 j`, of which bits 7 on are xor-ed into bits 4 on, as many as S / 16 has values, and `leading`
    does not count (PTX ISA, "Strides" and "Matrix Descriptor Format"). Such a pattern begins at an address that is a
    multiple of 8 S. The base and offset, the same in all threads, name a multiple of 16 bytes.

    The instruction reads registers and shared memory, and writes the accumulators, at any time up to the wait for its
    group. What is stored to `b` by a thread comes before it only if a `simt.fence_async` and a barrier lie in between.
    Values of registers do not change, but an op that comes again in a loop writes its registers of `a` again, which
    must be after the wait too. The CPU target reads and writes at the wait; it reports whoever writes to `b` before,
    and an op that comes again too early.

    ```mlir
    %s = simt.wgmma %a, %p[%o] swizzle 128 leading 16 stride 1024 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<32xf32>>
    %t = simt.wgmma %a, %p[%o] swizzle 0 leading 128 stride 256 plus %s : !simt.accumulators<vector<32xf32>>
      : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<32xf32>>
    %u = simt.wgmma %q as si8, %p[%o] as ui8 swizzle 64 leading 16 stride 512
      : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xi32>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[VectorOfLengthAndType<[8], [F16, BF16]>, VectorOfLengthAndType<[4], [I32]>]>:$a,
      OptionalAttr<TypeAttr>:$aType, Simt_PtrType:$base, I64:$offset, OptionalAttr<TypeAttr>:$bType, I64Attr:$swizzle,
      I64Attr:$leading, I64Attr:$stride, Optional<AnyTypeOf<[Simt_AccumulatorsVector, Simt_AccumulatorsType]>>:$c);
  let results = (outs Simt_AccumulatorsType:$d);
  let assemblyFormat = [{
    $a (`as` $aType^)? `,` $base `[` $offset `]` (`as` $bType^)? `swizzle` $swizzle `leading` $leading `stride` $stride
    (`plus` $c^ `:` type($c))? attr-dict `:` type($a) `,` type($base) `->` type($d)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What `a` and `b` hold, packed or not.
    ::mlir::Type getElementTypeOfA();
    ::mlir::Type getElementTypeOfB();
    /// The extents of the instruction.
    int64_t getN() { return 2 * getD().getType().getVector().getNumElements(); }
    int64_t getK();
  }];
}

def Simt_WgmmaCommitOp : Simt_Op<"wgmma_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close a group of this warp's products";
  let description = [{
    All since the last commit (PTX ISA, `wgmma.commit_group.sync.aligned`).

    ```mlir
    simt.wgmma_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Simt_WgmmaWaitOp : Simt_Op<"wgmma_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait for groups of this warp's products, and take their accumulators";
  let description = [{
    Until all but the last `n` groups are complete (PTX ISA, `wgmma.wait_group.sync.aligned`). The accumulators must be those of
    complete groups; the CPU target reports others.

    ```mlir
    %d = simt.wgmma_wait 0 takes %s : (!simt.accumulators<vector<32xf32>>) -> vector<32xf32>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$n, Variadic<Simt_AccumulatorsType>:$pending);
  let results = (outs Variadic<Simt_AccumulatorsVector>:$accumulators);
  let assemblyFormat = "$n (`takes` $pending^ `:` functional-type($pending, $accumulators))? attr-dict";
  let hasVerifier = 1;
}

def Simt_TakeTurnOp : Simt_Op<"take_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until it is this warpgroup's turn";
  let description = [{
    Of the `groups` first warpgroups of the block, each of which gives the turn to the next, the last one to the first. All
    their threads come here (PTX ISA, `barrier.sync` of two warpgroups). It changes no result: on the CPU target it does
    nothing.

    ```mlir
    simt.take_turn of 2
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<2>, IntMaxValue<8>]>:$groups);
  let assemblyFormat = "`of` $groups attr-dict";
}

def Simt_GiveTurnOp : Simt_Op<"give_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "let the next warpgroup take its turn";
  let description = [{
    As `simt.take_turn` says. It does not wait (PTX ISA, `barrier.arrive`). Before the first turn is taken the last
    warpgroup gives it to the first.

    ```mlir
    simt.give_turn of 2
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<2>, IntMaxValue<8>]>:$groups);
  let assemblyFormat = "`of` $groups attr-dict";
}

#endif // LOWLP_IR_SIMTWGMMAOPS_TD
