//===- SimtMatrixOps.td - matrix instructions of a warp ----*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTMATRIXOPS_TD
#define LOWLP_IR_SIMTMATRIXOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_MmaOp : Simt_Op<"mma", [Pure, AllTypesMatch<["c", "d"]>]> {
  let summary = "a warp's matrix multiply and accumulate";
  let description = [{
    `d = a * b + c` over the 32 threads of a warp, all of which must arrive here together: `mma.sync.aligned` with a row
    by column product of 16 x K by K x 8. Each thread gives 4 registers of 32 bits of `a`, 2 of `b` and 4 accumulators
    `c`, in the order of the instruction's fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16", "k32", "k128" and
    "k256"); of 128 bits it gives half as many of `a` and `b`:

    | Elements of a and b                          | Operands                                | K   | Accumulators | Since |
    |----------------------------------------------|-----------------------------------------|-----|--------------|-------|
    | `f16`, `bf16`                                | `vector<8xf16>`, `vector<4xf16>`        | 16  | `f32`        | sm_80 |
    | `si8` or `ui8`, each                         | `vector<4xi32>`, `vector<2xi32>`        | 32  | `i32`        | sm_80 |
    | `f8E4M3FN` or `f8E5M2`, each                 | `vector<4xi32>`, `vector<2xi32>`        | 32  | `f32`        | sm_89 |
    | `ui1`, whose product is the bitwise and      | `vector<4xi32>`, `vector<2xi32>`        | 256 | `i32`        | sm_80 |
    | `ui1`                                        | `vector<2xi32>`, `vector<1xi32>`        | 128 | `i32`        | sm_80 |

    Sums of integers wrap around. What packed registers hold is said after `as`.

    ```mlir
    %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
    %e = simt.mma %p as si8, %q as ui8, %s : vector<4xi32>, vector<2xi32>, vector<4xi32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[VectorOfLengthAndType<[8], [F16, BF16]>, VectorOfLengthAndType<[2, 4], [I32]>]>:$a,
      OptionalAttr<TypeAttr>:$aType,
      AnyTypeOf<[VectorOfLengthAndType<[4], [F16, BF16]>, VectorOfLengthAndType<[1, 2], [I32]>]>:$b,
      OptionalAttr<TypeAttr>:$bType,
      VectorOfLengthAndType<[4], [F32, I32]>:$c);
  let results = (outs VectorOfLengthAndType<[4], [F32, I32]>:$d);
  let assemblyFormat = [{
    $a (`as` $aType^)? `,` $b (`as` $bType^)? `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What `a` and `b` hold, packed or not.
    ::mlir::Type getElementTypeOfA();
    ::mlir::Type getElementTypeOfB();
    /// The extent K of the instruction.
    int64_t getK();
  }];
}

def Simt_LdMatrixOp : Simt_Op<"ldmatrix", [MemoryEffects<[MemRead]>]> {
  let summary = "a warp's load of 1, 2 or 4 matrices from shared memory";
  let description = [{
    Each matrix has 8 rows of 16 bytes. Lane `8 m + r` gives the address of row `r` of matrix `m`, a multiple of 16;
    the addresses of further lanes do not count. Word `m` of lane `l`'s result is word `l % 4` of row `l / 4` of matrix
    `m`: with elements of 16 bits, elements `2 (l % 4)` and one more. With `trans` it is the elements of 16 bits in
    column `l / 4` of rows `2 (l % 4)` and one more. All threads of the warp must arrive together (PTX ISA,
    `ldmatrix.sync.aligned.m8n8.b16`; sm_75).

    ```mlir
    %v = simt.ldmatrix %p[%offset] : !simt.ptr<shared> -> vector<4xi32>
    %w = simt.ldmatrix %p[%offset] trans : !simt.ptr<shared> -> vector<2xi32>
    ```
  }];
  let arguments = (ins Simt_PtrType:$base, I64:$offset, UnitAttr:$trans);
  let results = (outs VectorOfLengthAndType<[1, 2, 4], [I32]>:$matrices);
  let assemblyFormat = "$base `[` $offset `]` (`trans` $trans^)? attr-dict `:` type($base) `->` type($matrices)";
  let hasVerifier = 1;
}

def Simt_StMatrixOp : Simt_Op<"stmatrix", [MemoryEffects<[MemWrite]>]> {
  let summary = "a warp's store of 1, 2 or 4 matrices to shared memory";
  let description = [{
    The mirror of `simt.ldmatrix` (PTX ISA, `stmatrix.sync.aligned.m8n8.b16`; sm_90).

    ```mlir
    simt.stmatrix %v, %p[%offset] : vector<4xi32>, !simt.ptr<shared>
    ```
  }];
  let arguments = (ins VectorOfLengthAndType<[1, 2, 4], [I32]>:$matrices, Simt_PtrType:$base, I64:$offset,
      UnitAttr:$trans);
  let assemblyFormat = "$matrices `,` $base `[` $offset `]` (`trans` $trans^)? attr-dict `:` type($matrices) `,` type($base)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_SIMTMATRIXOPS_TD
