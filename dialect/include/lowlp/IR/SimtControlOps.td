//===- SimtControlOps.td - promises, early end -------------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTCONTROLOPS_TD
#define LOWLP_IR_SIMTCONTROLOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_AssertOp : Simt_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "a promise that the CPU target checks";
  let description = [{
    On the CPU target a false condition ends the launch with the message and the location. On a GPU it costs nothing:
    no instruction is made of it.

    ```mlir
    simt.assert %inside, "element lies outside of the view"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

def Simt_ExitOp : Simt_Op<"exit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "leave the kernel";
  let description = [{
    The thread ends; what follows in the same block does not run (PTX ISA, `ret`). It is no terminator, so that it may
    stand in the regions of `scf`; where these become blocks, it becomes `gpu.return`.

    ```mlir
    simt.exit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // LOWLP_IR_SIMTCONTROLOPS_TD
