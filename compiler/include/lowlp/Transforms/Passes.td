//===- Passes.td - from the block level to the block level ----*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_PASSES_TD
#define LOWLP_TRANSFORMS_PASSES_TD

include "lowlp/Transforms/CodebookPasses.td"
include "lowlp/Transforms/DecodePasses.td"
include "lowlp/Transforms/LayoutPasses.td"
include "lowlp/Transforms/LoopPasses.td"
include "lowlp/Transforms/MemoryPasses.td"

#endif // LOWLP_TRANSFORMS_PASSES_TD
