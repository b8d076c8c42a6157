//===- MemoryPasses.td - shared memory and clusters --------*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_MEMORYPASSES_TD
#define LOWLP_TRANSFORMS_MEMORYPASSES_TD

include "mlir/Pass/PassBase.td"

def PlanMemory : Pass<"lowlp-plan-memory", "::lowlp::KernelOp"> {
  let summary = "place the tiles of shared memory, sharing bytes where lives do not overlap";
  let description = [{
    Gives every `lowlp.alloc_shared` that has none an `offset`.

    A tile is live from an access to the last load that may read what is there, through `scf` loops and branches: over
    all of a loop, if a load may read what an iteration before has stored. A store of the whole tile ends what was there
    before. A tile that `lowlp.copy_async` fills is live until a `lowlp.copy_async_wait 0` after its commit. Two tiles
    may share bytes if neither is touched where the other is live. A tile that any other op than loads, lookups, stores
    and `lowlp.copy_async` uses, or that is used in a region of an op other than `scf.for`, `scf.if` and `scf.while`,
    shares with none.

    Tiles are placed from the largest to the smallest, each in the smallest gap between those that it must not overlap,
    at multiples of 16 bytes.

    Where bytes pass from one tile to another, or from one use of a `scratch` tile to the next, and no barrier stands
    between the accesses, the pass puts a `lowlp.synchronize` before the later one.

    Requires: `scratch` tiles are used in the kernel itself, or in those regions, only.

    Guarantees: no two threads touch the same byte of different tiles without a barrier between, where one of them
    writes. The attribute `lowlp.shared_bytes` says how many bytes the kernel takes, and the entry `unshared_bytes` of
    `lowlp.report` how many it would take without sharing. A kernel that takes more than 227 KiB is refused, with its tiles
    named.

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

def ExpandClusters : Pass<"lowlp-expand-clusters", "::lowlp::KernelOp"> {
  let summary = "let the blocks of clusters exchange tiles through global memory";
  let description = [{
    For targets without clusters that run blocks side by side: of a `lowlp.exchange_in_cluster` it makes a store to
    memory that all blocks share, a barrier of the cluster's blocks by semaphores, and a load.

    Guarantees: no `lowlp.exchange_in_cluster` is left, and the kernel's schedule has no `cluster`. Blocks wait for others of
    higher index, within their cluster, which the CPU executor makes room for.

    Before:

    ```mlir
    %b = lowlp.exchange_in_cluster %a : !lowlp.tile<2x32xf32, local(2, 1).spatial(1, 32)>
    ```

    After, for block `r` of the cluster that begins at block `first` of `n`:

    ```mlir
    %p = lowlp.alloc_global shape affine_map<() -> (n, 2, 32)> : !lowlp.ptr<f32>
    lowlp.store_global %a, %given[%r, %first, %c0] in_bounds : ...
    // a barrier of the cluster
    %b = lowlp.load_global %taken[%block, %c0, %c0] in_bounds : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // LOWLP_TRANSFORMS_MEMORYPASSES_TD
