//===- Passes.td - from the block level to the block level ----*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_PASSES_TD
#define LOWLP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandExchanges : Pass<"lowlp-expand-exchanges", "::lowlp::KernelOp"> {
  let summary = "carry out by shared memory what warps cannot do alone";
  let description = [{
    Decides how each `lowlp.convert_layout` is carried out, by the number of instructions that it costs: with registers
    or shuffles, which `lowlp-convert-to-thread` does, or through shared memory, which this pass makes of it. A
    `lowlp.reduce` over a dimension that is spread over several warps becomes a reduction within the warps, a conversion
    that gives every thread the values of all warps, and a reduction within each thread.

    Through shared memory an element of fewer than 8 bits is a byte, unless both layouts have runs that fill whole
    bytes; of the orders of dimensions and of some paddings the one is taken that costs the fewest passes of the banks.

    Guarantees: every `lowlp.convert_layout` that is left stays within warps, and so does every `lowlp.reduce`. New
    tiles are marked `scratch`, and `lowlp-plan-memory`, which must follow, sets the barrier between the loads of one use
    and the stores of the next. The attribute `lowlp.exchanges` of the kernel says of each conversion what was decided.

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

def PlanMemory : Pass<"lowlp-plan-memory", "::lowlp::KernelOp"> {
  let summary = "place the tiles of shared memory, sharing bytes where lives do not overlap";
  let description = [{
    Gives every `lowlp.alloc_shared` that has none an `offset`.

    A tile is live from an access to the last load that may read what is there, through `scf` loops and branches: over
    all of a loop, if a load may read what an iteration before has stored. A store of the whole tile ends what was there
    before. A tile that `lowlp.copy_async` fills is live until a `lowlp.copy_async_wait 0` behind its commit. Two tiles
    may share bytes if neither is touched where the other is live. A tile that any other op than loads, lookups, stores
    and `lowlp.copy_async` uses, or that is used in a region of an op other than `scf.for`, `scf.if` and `scf.while`,
    shares with none.

    Tiles are placed from the largest to the smallest, each in the smallest gap between those that it must not overlap,
    at multiples of 16 bytes.

    Where bytes pass from one tile to another, or from one use of a `scratch` tile to the next, and no barrier stands
    between the accesses, the pass puts a `lowlp.synchronize` before the later one.

    Requires: `scratch` tiles are used in the kernel itself, or in those regions, only.

    Guarantees: no two threads touch the same byte of different tiles without a barrier between, where one of them
    writes. The attribute `lowlp.shared_bytes` says how many bytes the kernel takes, and `lowlp.unshared_bytes` how many it
    would take without sharing. A kernel that takes more than 227 KiB is refused, with its tiles named.

    Before:

    ```mlir
    %a = lowlp.alloc_shared : !lowlp.shared<32xf32>
    %b = lowlp.alloc_shared : !lowlp.shared<32xf32>
    lowlp.store_shared %x, %a[%c0] : !tile, !lowlp.shared<32xf32>
    lowlp.synchronize
    %y = lowlp.load_shared %a[%c0] : !lowlp.shared<32xf32> -> !tile
    lowlp.store_shared %z, %b[%c0] : !tile, !lowlp.shared<32xf32>
    ```

    After:

    ```mlir
    %a = lowlp.alloc_shared at 0 : !lowlp.shared<32xf32>
    %b = lowlp.alloc_shared at 0 : !lowlp.shared<32xf32>
    lowlp.store_shared %x, %a[%c0] : !tile, !lowlp.shared<32xf32>
    lowlp.synchronize
    %y = lowlp.load_shared %a[%c0] : !lowlp.shared<32xf32> -> !tile
    lowlp.synchronize
    lowlp.store_shared %z, %b[%c0] : !tile, !lowlp.shared<32xf32>
    ```
  }];
  let statistics = [
    Statistic<"numBytes", "bytes", "bytes of shared memory">,
    Statistic<"numUnsharedBytes", "unshared-bytes", "bytes that it would take without sharing">,
    Statistic<"numBarriers", "barriers", "barriers added">,
  ];
}

#endif // LOWLP_TRANSFORMS_PASSES_TD
