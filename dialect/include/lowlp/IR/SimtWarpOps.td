//===- SimtWarpOps.td - exchange within a warp -------------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTWARPOPS_TD
#define LOWLP_IR_SIMTWARPOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_BallotOp : Simt_Op<"ballot", [Pure]> {
  let summary = "where a condition holds, as one bit a lane";
  let description = [{
    Bit t of the result is the condition of lane t. All 32 threads of the warp must arrive here together (PTX ISA,
    `vote.sync.ballot.b32`).

    ```mlir
    %lanes = simt.ballot %condition
    ```
  }];
  let arguments = (ins I1:$condition);
  let results = (outs I32:$lanes);
  let assemblyFormat = "$condition attr-dict";
}

#endif // LOWLP_IR_SIMTWARPOPS_TD
