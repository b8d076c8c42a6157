//===- Lowlp.td - the block dialect, one entry point ----------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLP_TD
#define LOWLP_IR_LOWLP_TD

include "lowlp/IR/LowlpDialect.td"
include "lowlp/IR/LowlpAttrs.td"
include "lowlp/IR/LowlpSchedule.td"
include "lowlp/IR/LowlpEnums.td"
include "lowlp/IR/LowlpTypes.td"
include "lowlp/IR/LowlpInterfaces.td"
include "lowlp/IR/LowlpKernelOps.td"
include "lowlp/IR/LowlpMemoryOps.td"
include "lowlp/IR/LowlpSharedOps.td"
include "lowlp/IR/LowlpCopyOps.td"
include "lowlp/IR/LowlpBarrierOps.td"
include "lowlp/IR/LowlpBulkOps.td"
include "lowlp/IR/LowlpOrderOps.td"
include "lowlp/IR/LowlpComputeOps.td"
include "lowlp/IR/LowlpWgmmaOps.td"
include "lowlp/IR/LowlpMathOps.td"
include "lowlp/IR/LowlpShapeOps.td"
include "lowlp/IR/LowlpLayoutOps.td"
include "lowlp/IR/LowlpIntegerOps.td"
include "lowlp/IR/LowlpGatherOps.td"
include "lowlp/IR/LowlpLookupOps.td"
include "lowlp/IR/LowlpCodebookOps.td"
include "lowlp/IR/LowlpPackedOps.td"
include "lowlp/IR/LowlpEncodeOps.td"
include "lowlp/IR/LowlpWarpOps.td"
include "lowlp/IR/LowlpControlOps.td"

#endif // LOWLP_IR_LOWLP_TD
