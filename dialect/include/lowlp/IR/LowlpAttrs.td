//===- LowlpAttrs.td - attributes of the block dialect --------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPATTRS_TD
#define LOWLP_IR_LOWLPATTRS_TD

include "lowlp/IR/LowlpCodebook.td"
include "lowlp/IR/LowlpDialect.td"
include "lowlp/IR/LowlpPackedAttrs.td"
include "mlir/IR/AttrTypeBase.td"

def Lowlp_LayoutAttr : AttrDef<LowlpDialect, "Layout"> {
  let attrName = "lowlp.layout";
  let summary = "which thread holds which element of a tile";
  let description = [{
    A function from (thread `t`, local index `i`) to the index of an element of a tile (Tilus, section 4 and
    appendix A). Two primitives, `local(n1, ..., nr)` (all elements in one thread) and `spatial(n1, ..., nr)` (one
    element in each thread), both in row-major order, and their column-major twins are composed:

    ```
    (f . g)(t, i) = f(t / Tg, i / mg) * Sg + g(t % Tg, i % mg)
    ```

    where `Tg`, `mg` and `Sg` are the threads, locals per thread and shape of `g`. Examples:

    ```mlir
    #lowlp.layout<spatial(2, 4).local(2, 1)>                 // 8 threads, 2 locals, shape 4x4
    #lowlp.layout<local(2, 1).spatial(8, 4).local(1, 2)>     // the f32 accumulators of mma.sync m16n8k16
    ```

    Layouts are held in one canonical form, so two attributes are equal exactly when the functions are.
  }];
  let parameters = (ins Lowlp_LayoutParameter:$layout);
}

#endif // LOWLP_IR_LOWLPATTRS_TD
