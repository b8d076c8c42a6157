//===- Simt.td - the thread dialect, one entry point -------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMT_TD
#define LOWLP_IR_SIMT_TD

include "lowlp/IR/SimtDialect.td"
include "lowlp/IR/SimtMemoryOps.td"
include "lowlp/IR/SimtAtomicOps.td"
include "lowlp/IR/SimtCopyOps.td"
include "lowlp/IR/SimtBarrierOps.td"
include "lowlp/IR/SimtBulkOps.td"
include "lowlp/IR/SimtMatrixOps.td"
include "lowlp/IR/SimtWgmmaOps.td"
include "lowlp/IR/SimtIntegerOps.td"
include "lowlp/IR/SimtWarpOps.td"
include "lowlp/IR/SimtControlOps.td"

#endif // LOWLP_IR_SIMT_TD
