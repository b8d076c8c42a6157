//===- SimtMatrixOps.td - matrix instructions of a warp ----*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTMATRIXOPS_TD
#define LOWLP_IR_SIMTMATRIXOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_MmaOp : Simt_Op<"mma", [Pure, AllTypesMatch<["c", "d"]>]> {
  let summary = "a warp's matrix multiply and accumulate, m16n8k16";
  let description = [{
    `d = a * b + c` over the 32 threads of a warp, all of which must arrive here together. Each gives 8 elements of
    `a`, 4 of `b` and 4 of `c`, in the order of the fragments of `mma.sync.aligned.m16n8k16.row.col` (PTX ISA, "Matrix
    Fragments for mma.m16n8k16").

    ```mlir
    %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[VectorOfLengthAndType<[8], [F16]>, VectorOfLengthAndType<[8], [BF16]>]>:$a,
      AnyTypeOf<[VectorOfLengthAndType<[4], [F16]>, VectorOfLengthAndType<[4], [BF16]>]>:$b,
      VectorOfLengthAndType<[4], [F32]>:$c);
  let results = (outs VectorOfLengthAndType<[4], [F32]>:$d);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_SIMTMATRIXOPS_TD
