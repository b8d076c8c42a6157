//===- LayoutPasses.td - layouts of registers --------------*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_LAYOUTPASSES_TD
#define LOWLP_TRANSFORMS_LAYOUTPASSES_TD

include "mlir/Pass/PassBase.td"

def InferLayouts : Pass<"lowlp-infer-layouts", "::lowlp::KernelOp"> {
  let summary = "hold tiles as the ops around them need them";
  let description = [{
    A front end that lets its users leave layouts away gives each such tile one that is correct, marks the op with
    `lowlp.free_layout`, and puts a `lowlp.convert_layout` with the same mark wherever an op needs another: that is the
    program at `-O0`. This pass chooses the layouts anew, and takes these conversions away.

    A tile is free whose op has the mark, or is one of `LayoutTransferInterface` with free operands only; so are values that
    loops carry and branches yield. All others keep their layouts: what users named, the operands of `lowlp.dot`, and what
    an op reads register by register. From their uses layouts spread first back to the tiles of which a tile is made, then
    forward to those that are made of it; of several the nearest use wins. Forward no layout goes that holds every element
    more often than the tile does now. A tile that no use reaches and that is reduced along a dimension over which several warps
    are spread gets the warps along its other dimensions, where these have room for them: the reduction then needs no barrier.

    A conversion is left where two uses need a tile differently; after a load outside of stages, or before a store, where
    an access along memory and the conversion cost less than an access in the other layout; and where an op, such as
    `lowlp.reduce`, cannot give its result the layout that a use needs. A `lowlp.splat` or `lowlp.iota` is made twice
    instead. The entry `layouts` of the kernel's `lowlp.report` says which conversions are left and why.

    Guarantees: no `lowlp.free_layout` is left, and every layout that a user named. Kernels without the mark stay as they
    are. Values are the same, but for the order in which `lowlp.reduce` adds, which follows the layout.

    Before:

    ```mlir
    %init = lowlp.splat %zero {lowlp.free_layout} : f32 -> !blocked
    %accumulators = scf.for ... iter_args(%acc = %init) -> (!blocked) {
      %x = lowlp.load_global %v[%i, %k] {lowlp.free_layout} : !lowlp.global<?x?xf16> -> !coalesced
      %a = lowlp.convert_layout %x {lowlp.free_layout} : !coalesced -> !fragments_of_a
      %c = lowlp.convert_layout %acc {lowlp.free_layout} : !blocked -> !fragments_of_c
      %d = lowlp.dot %a, %b, %c : !fragments_of_a, !fragments_of_b, !fragments_of_c
      %next = lowlp.convert_layout %d {lowlp.free_layout} : !fragments_of_c -> !blocked
      scf.yield %next : !blocked
    } {lowlp.stages = #lowlp.stages<3>}
    ```

    After:

    ```mlir
    %init = lowlp.splat %zero : f32 -> !fragments_of_c
    %accumulators = scf.for ... iter_args(%acc = %init) -> (!fragments_of_c) {
      %a = lowlp.load_global %v[%i, %k] : !lowlp.global<?x?xf16> -> !fragments_of_a
      %d = lowlp.dot %a, %b, %acc : !fragments_of_a, !fragments_of_b, !fragments_of_c
      scf.yield %d : !fragments_of_c
    } {lowlp.stages = #lowlp.stages<3>}
    ```
  }];
  let statistics = [
    Statistic<"numTiles", "tiles", "tiles that got another layout">,
    Statistic<"numRemoved", "conversions-removed", "conversions taken away">,
    Statistic<"numLeft", "conversions-left", "conversions that are left, or moved">,
  ];
}

def ReinterpretLayouts : Pass<"lowlp-reinterpret-layouts", "::lowlp::KernelOp"> {
  let summary = "load packed weights as words";
  let description = [{
    A load of codes of a few bits becomes a load of 32-bit words, aligned and coalesced, and `lowlp.unpack`, which sees
    the same registers as codes (Tilus, section 6.2). How the words are held follows from the tile's layout and from the
    placement of the packed format alone; the transform of the weights follows from the placement too, with no
    kernel.

    Guarantees: no `lowlp.load_packed` and no `lowlp.view_packed` is left.

    Before:

    ```mlir
    %v = lowlp.view_packed %p shape [64, 256] : !lowlp.ptr<ui32> -> !lowlp.packed<64x256xsi6, "int6.f16">
    %q = lowlp.load_packed %v[%row, %k] : !lowlp.packed<64x256xsi6, "int6.f16"> -> !lowlp.tile<16x64xsi6, ...>
    ```

    After:

    ```mlir
    %v = lowlp.view_global %p shape [4, 4, 192] : !lowlp.ptr<ui32> -> !lowlp.global<4x4x192xui32>
    %i = arith.divui %row, %c16 : index
    %j = arith.divui %k, %c64 : index
    %words = lowlp.load_global %v[%i, %j, %c0] : !lowlp.global<4x4x192xui32>
      -> !lowlp.tile<1x1x192xui32, local(1, 1, 3).spatial(1, 1, 32).local(1, 1, 2)>
    %q = lowlp.unpack %words from "int6.f16" : !lowlp.tile<1x1x192xui32, ...> -> !lowlp.tile<16x64xsi6, ...>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numLoads", "loads", "loads of packed weights">,
  ];
}

def ExpandExchanges : Pass<"lowlp-expand-exchanges", "::lowlp::KernelOp"> {
  let summary = "carry out by shared memory what warps cannot do alone";
  let description = [{
    Decides how each `lowlp.convert_layout` is carried out, by the number of instructions that it costs: with registers
    or shuffles, which `lowlp-convert-to-thread` does, or through shared memory, which this pass makes of it. A
    `lowlp.reduce` over a dimension that is spread over several warps becomes a reduction within the warps, a conversion
    that gives every thread the values of all warps, and a reduction within each thread.

    Through shared memory an element of fewer than 8 bits is a byte, unless both layouts have runs that fill whole
    bytes; of the orders of dimensions and of some paddings the one is taken that costs the fewest passes of the banks.

    A `lowlp.exchange_in_cluster` gets its shared memory, which shares no bytes with other tiles.

    Guarantees: every `lowlp.convert_layout` that is left stays within warps, and so does every `lowlp.reduce`. New
    tiles are marked `scratch`, and `lowlp-plan-memory`, which must follow, sets the barrier between the loads of one use
    and the stores of the next. The entry `exchanges` of the kernel's `lowlp.report` says of each conversion what was decided.

    Before:

    ```mlir
    %b = lowlp.convert_layout %a : !lowlp.tile<2x32xf32, spatial(2, 32)> -> !lowlp.tile<2x32xf32, column_spatial(2, 32)>
    ```

    After, with a layout that moves elements from warp to warp:

    ```mlir
    %s = lowlp.alloc_shared scratch : !lowlp.shared<2x32xf32>
    lowlp.store_shared %a, %s[%c0, %c0] in_bounds : !lowlp.tile<2x32xf32, spatial(2, 32)>, !lowlp.shared<2x32xf32>
    lowlp.synchronize
    %b = lowlp.load_shared %s[%c0, %c0] in_bounds : !lowlp.shared<2x32xf32> -> !lowlp.tile<2x32xf32, column_spatial(2, 32)>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [
    Statistic<"numInRegisters", "conversions-in-registers", "conversions that move no element between threads">,
    Statistic<"numByShuffles", "conversions-by-shuffles", "conversions within warps">,
    Statistic<"numThroughShared", "conversions-through-shared", "conversions through shared memory">,
    Statistic<"numReductions", "reductions-across-warps", "reductions that several warps share">,
  ];
}

#endif // LOWLP_TRANSFORMS_LAYOUTPASSES_TD
