//===- SimtIntegerOps.td - instructions on 32-bit words ----*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTINTEGEROPS_TD
#define LOWLP_IR_SIMTINTEGEROPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_FunnelShiftOp : Simt_Op<"funnel_shift", [Pure]> {
  let summary = "32 bits out of two words that stand next to each other";
  let description = [{
    The upper half of the 64 bits `high : low` shifted to the left by `amount` modulo 32, or with `right` the lower half
    of these bits shifted to the right (PTX ISA, `shf.l.wrap.b32` and `shf.r.wrap.b32`).

    ```mlir
    %c = simt.funnel_shift %low, %high, %n right
    ```
  }];
  let arguments = (ins I32:$low, I32:$high, I32:$amount, UnitAttr:$right);
  let results = (outs I32:$result);
  let assemblyFormat = "$low `,` $high `,` $amount (`right` $right^)? attr-dict";
}

#endif // LOWLP_IR_SIMTINTEGEROPS_TD
