//===- Passes.td - from the block level to the block level ----*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_PASSES_TD
#define LOWLP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

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

def FoldScales : Pass<"lowlp-fold-scales", "::lowlp::KernelOp"> {
  let summary = "scale the accumulators of products in place of their weights";
  let description = [{
    A product is linear in its weights. Where a program makes operand a of a `lowlp.dot` of packed codes, cast or looked up,
    by multiplying or adding numbers of which each row has one, such as the scales and zero points of a group, this pass
    multiplies by the codes as they are and does the same to the accumulators, in f32 and in the program's order:

    - `(w * s) * x` becomes `s * (w * x)`: an instruction for each accumulator in place of one for each weight, or two of
      them; and what is cast and no more is decoded by the shortest plans of `lowlp-plan-decode`, which should follow;
    - `(w - z) * x` becomes `w * x - z * (1 * x)`, with the sums of x as a product with a tile of ones.

    Products of one accumulator whose weights are made alike, such as parts of a group along K, are folded together.

    Products are added in another order then, and no weight is rounded after its scale: results differ by roundings. So
    the pass does this only in kernels whose schedule says `reassociate`. With one number other than 0 in a row of x
    they are what the codec says, wherever f32 holds that.

    By default it folds where that takes fewer instructions of a thread, which is for few columns; `when=always`
    does so wherever it can. What is left as it was gets a remark with the reason: a schedule that does not allow it, slices, types that do not hold the codes before
    they are scaled, weights made in other ways, costs.

    Requires: `lowlp-reinterpret-layouts` has made `lowlp.unpack` of loads of packed weights.

    Guarantees: the layouts of accumulators stay; numbers for rows that are held otherwise go through a
    `lowlp.convert_layout`.

    Before:

    ```mlir
    %w = lowlp.cast %codes : !codes -> !halves
    %s = lowlp.broadcast %scales : !column -> !halves
    %a = lowlp.mul %w, %s : !halves
    %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
    ```

    After:

    ```mlir
    %w = lowlp.cast %codes : !codes -> !halves
    %raw = lowlp.dot %w, %x, %zeros : !halves, !x, !sum
    %wide = lowlp.cast %scales : !column -> !column_of_f32
    %s = lowlp.broadcast %wide : !column_of_f32 -> !sum
    %next = lowlp.fma %s, %raw, %acc : !sum
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"when", "when", "std::string", "\"auto\"", "what to fold: auto, where it takes fewer instructions, or always">,
  ];
  let statistics = [
    Statistic<"numFolded", "folded", "products whose accumulators are scaled">,
    Statistic<"numSumsOfX", "sums-of-x", "sums of x that were added">,
    Statistic<"numDeclined", "declined", "products that stayed as they were">,
  ];
}

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

def ChooseRings : Pass<"lowlp-choose-rings", "::lowlp::KernelOp"> {
  let summary = "choose which loads of a loop run ahead, through which rings";
  let description = [{
    Takes each `scf.for` with the attribute `lowlp.stages`, of S places, and chooses for its loads of global memory rings of S
    places in shared memory, which `lowlp-pipeline` makes. Those loads of its body are meant whose offsets follow from the
    induction variable and from what is known before the loop, of elements of whole bytes, through parameters that the kernel
    does not write. The others stay as they are, each with a remark that says why.

    Where the architecture has tensor copies and all these loads fit what they demand (`lowlp.copy_tensor`), the first thread
    begins them; neighbouring parts of a view then become one copy. With a `producer` a warp of its own begins them
    (`lowlp.producer_warp`), where what they need can be computed at the begin of the kernel, and no `lowlp.exit` may end the
    block before the loop. Else all threads copy by `lowlp.copy_async`.

    A place is laid out so that `ldmatrix` meets every bank once where the tile is held as matrices and its rows are 32, 64
    or 128 bytes.

    Requires: the loop stands in the body of the kernel itself, and no `lowlp.exit` in it.

    Guarantees: no loop has `lowlp.stages`. A loop that has `lowlp.rings` already, and its loads, keep what they have.

    Before:

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      %t = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x64xf32> -> !lowlp.tile<64xf32, local(2).spatial(32)>
    } {lowlp.stages = #lowlp.stages<3>}
    ```

    After:

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      %t = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : ...
    } {lowlp.rings = #lowlp.rings<first_thread fills [!lowlp.shared<3x64xf32>]>}
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"\"sm_90a\"", "the architecture, such as sm_90a">,
  ];
  let statistics = [
    Statistic<"numRings", "rings", "rings chosen">,
  ];
}

def PipelineLoops : Pass<"lowlp-pipeline", "::lowlp::KernelOp"> {
  let summary = "load ahead what the iterations of a loop need";
  let description = [{
    Carries out what `lowlp-choose-rings` has chosen, or whoever wrote it by hand, for each `scf.for` with `lowlp.rings`: while
    an iteration computes with one place of a ring, copies into the others are in flight.

    By tensor copies mbarriers say when a place is full and when it has been read; by asynchronous copies each iteration has a
    barrier of the block. The entry `pipelines` of `lowlp.report` says which, and what stood in the way of tensor copies.

    The first S - 1 iterations are copied before the loop. Where a `lowlp.wait_for_dependencies` stands there, with nothing but
    arithmetic after it, what is loaded through parameters that carry `lowlp.constant` is copied before it.

    Requires: loads with a ring can be made ahead, lie in memory as their positions say, and tensor copies can make them where
    these are chosen; it is verified.

    Guarantees: the attributes `lowlp.rings` and `lowlp.ring` are gone.

    Before:

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      %t = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : ...
    } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf32>]>}
    ```

    After, without what stands before the loop:

    ```mlir
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%place = %c0, %parity = %c0) {
      lowlp.copy_async_wait 1
      lowlp.synchronize
      scf.if %follows {
        lowlp.copy_async %v[%next, %c0] to %ring[%free, %c0] shape [64] : !lowlp.global<?x64xf32> to !lowlp.shared<3x64xf32>
      }
      lowlp.copy_async_commit
      %t = lowlp.load_shared %ring[%place, %c0] in_bounds : !lowlp.shared<3x64xf32> -> !lowlp.tile<64xf32, local(2).spatial(32)>
    }
    lowlp.copy_async_wait 0
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"\"sm_90a\"", "the architecture, such as sm_90a">,
  ];
  let statistics = [
    Statistic<"numLoops", "loops", "loops that got stages">,
    Statistic<"numLoads", "loads", "loads that go through stages">,
  ];
}

def PlanDecode : Pass<"lowlp-plan-decode", "::lowlp::KernelOp"> {
  let summary = "decode the weights of products by plans";
  let description = [{
    Where packed codes are cast, or cast and multiplied by a power of two, and are operand a of `lowlp.dot` or
    `lowlp.wgmma`, gives the product words and a decode plan in place of codes: the shortest instructions found for the
    placement at the issue rates of the architecture, and proved on every code.

    A plan's numbers differ from the weights by a power of two and an offset for each row. Both leave the product: with
    `a = (w + offset) * 2^exponent` for a row, `w * x = 2^-exponent * (a * x) - offset * (1 * x)`. The accumulators that a loop
    carries stay in the units of the plan; after the loop they are multiplied once, or what they are multiplied by is,
    if that is one factor of f16 or fewer bits for each row.

    An offset is taken off in one of two places: off the weights, by a sum for each register, which is exact; or off the
    accumulators. Then the loop also carries the sums of x, as products with a tile of ones; sums of x that the program has
    already are used. Products of warpgroups, and all of a kernel whose schedule has `matrix_unit = warpgroup`, have offsets
    taken off the weights; `lowlp.dot` has where that is cheaper, which is for more than 8 columns. The field
    `decode_offsets` of the kernel's schedule comes before the option `offsets`.

    Products are of f16 or bf16, with accumulators in f32, so the powers of two round nothing. Casts that round a weight, that
    are used otherwise, or whose type has no plan, stay as they are.

    Weights that the program scales itself, `cast(codes) * s` or `(cast(codes) - z) * s` in the type of the activations
    with a factor for each row, are decoded by a plan with the ending `weights`, which rounds as the program does.

    Before:

    ```mlir
    %sum = scf.for ... iter_args(%acc = %zeros) -> (!sum) {
      %q = lowlp.load_packed %v[%row, %k] : !lowlp.packed<4096x4096xui4, "int4.f16"> -> !codes
      %a = lowlp.cast %q : !codes -> !halves
      %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
      scf.yield %next : !sum
    }
    ```

    After, once `lowlp-reinterpret-layouts` has run:

    ```mlir
    %raw = scf.for ... iter_args(%acc = %zeros) -> (!sum) {
      %words = lowlp.load_global ...
      %a = lowlp.decode %words {plan = #lowlp.plan<[...]>} : !words -> !halves
      %next = lowlp.dot %a, %x, %acc : !halves, !x, !sum
      scf.yield %next : !sum
    }
    %scale = lowlp.row_constants [1.67772e+07, 1.04858e+06] : !sum
    %sum = lowlp.mul %raw, %scale : !sum
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_90a\"", "the architecture whose issue rates count, such as sm_90a">,
    Option<"offsets", "offsets", "std::string", "\"auto\"", 
           "where a plan's offsets are taken off: weights, accumulators or auto">,
  ];
  let statistics = [
    Statistic<"numPlanned", "planned", "tiles that a plan decodes">,
    Statistic<"numSumsOfX", "sums-of-x", "sums of x that were added">,
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

def DecomposeBitSlices : Pass<"lowlp-decompose-bit-slices", "::lowlp::KernelOp"> {
  let summary = "look codes up by the slices in which they are packed";
  let description = [{
    Placements of tables pack codes of 3, 5, 6 and 7 bits as slices, in words of their own: 3 = 2 + 1, 5 = 4 + 1, 6 = 4 + 2,
    7 = 4 + 2 + 1 (FLUTE, section 3.1). Where such a `lowlp.unpack` is used by lookups alone, it is split into one for each
    slice, which is a part of the words as it is, and the lookups take the slices: the bits of all of them meet in the
    address. A table of pairs is then filled in the order that the slices give it.

    An unpacked tile that other ops use stays whole, as does one whose pairs are looked up in a table that not all
    lookups use with the same slices: `lowlp.unpack` puts the bits of such codes together by shifts.

    Before:

    ```mlir
    lowlp.expand_table %plain, %pairs : !lowlp.shared<8xf16>, !lowlp.shared<64x32x2xf16>
    %codes = lowlp.unpack %words from "lut3.f16" : !words -> !lowlp.tile<16x64xui3, ...>
    %w = lowlp.lookup_pairs %pairs, %codes : !lowlp.shared<64x32x2xf16>, !lowlp.tile<16x64xui3, ...> -> !values
    ```

    After:

    ```mlir
    lowlp.expand_table %plain, %pairs slices [2, 1] : !lowlp.shared<8xf16>, !lowlp.shared<64x32x2xf16>
    %low = lowlp.unpack %words from "lut3.f16" : !words -> !lowlp.tile<16x64xui2, ...>
    %high = lowlp.unpack %words from "lut3.f16" bit 2 : !words -> !lowlp.tile<16x64xui1, ...>
    %w = lowlp.lookup_pairs %pairs, %low, %high : !lowlp.shared<64x32x2xf16>, !lowlp.tile<16x64xui2, ...>,
      !lowlp.tile<16x64xui1, ...> -> !values
    ```
  }];
  let statistics = [
    Statistic<"numSplit", "split", "unpacked tiles split into slices">,
    Statistic<"numSlices", "slices", "slices that these became">,
  ];
}

def SinkSelects : Pass<"lowlp-sink-selects"> {
  let summary = "let a branch yield what selects of its condition choose";
  let description = [{
    Canonicalization turns a result of an `scf.if` that both its regions only pass on into an `arith.select`. Of vectors, such
    as the accumulators of a loop that begin anew after some iterations, a select is an instruction for each register in every
    iteration. Here it becomes a result of an `scf.if` of its block that has the same condition, where both values are there
    before the branch and the choice is used after it only. Numbers, whose selects are cheap, stay as they are, and so
    does a select without such a branch.

    Guarantees: values are the same. Canonicalization would undo it, so it runs after the last one that sees `scf`.

    Before:

    ```mlir
    %accumulators = arith.select %ends, %zero, %acc : vector<64xf32>
    scf.if %ends {
      ...
    }
    scf.yield %accumulators : vector<64xf32>
    ```

    After:

    ```mlir
    %accumulators = scf.if %ends -> (vector<64xf32>) {
      ...
      scf.yield %zero : vector<64xf32>
    } else {
      scf.yield %acc : vector<64xf32>
    }
    scf.yield %accumulators : vector<64xf32>
    ```
  }];
  let statistics = [
    Statistic<"numSelects", "selects", "selects that became results of a branch">,
  ];
}

def UseWarpgroups : Pass<"lowlp-use-warpgroups", "::lowlp::KernelOp"> {
  let summary = "make products by warpgroups, beside what makes their operands";
  let description = [{
    In a kernel whose schedule has `matrix_unit = warpgroup` and where the architecture has `wgmma`, takes each `lowlp.dot` whose
    operand b is a `lowlp.transpose` of a `lowlp.load_shared` from a tile that a matrix descriptor describes, and makes of it a
    `lowlp.wgmma` that reads the shared tile itself, a commit and a wait. Operand a and the accumulators must be held as
    `lowlp.wgmma` demands. Other products stay as they are.

    Of the products of a block at most `products_in_flight` of the schedule are in flight: while
    one multiplies, the operand of the next is made. Ops that use accumulators are put off until the wait for them, and
    the loads of an operand are put before the product in front of it. A chain of products, each of which adds to the accumulators
    of the one before, has one wait. At the end of the block, and before any op that cannot be put off and orders memory or has
    regions, all products are waited for; a `lowlp.mbarrier_arrive` among them goes after that wait, as it says that the
    stage has been read. Where threads have stored the shared tile, a `lowlp.fence_async` goes before the barrier in front
    of the product.

    Guarantees: products are the same, in the same order along K; only the instruction rounds its own accumulators. The entry
    `warpgroups` of `lowlp.report` says how many there are. Where there are none, the schedule keeps no `exchange_registers`.

    Before:

    ```mlir
    lowlp.mbarrier_wait %full[%place] parity %parity
    %a = lowlp.decode %words ...
    %x = lowlp.load_shared %xs[%place, %c0, %c0] in_bounds : !lowlp.shared<4x64x64xf16, ...> -> !x
    %xt = lowlp.transpose %x [1, 0] : !x -> !xt
    %raw = lowlp.dot %a, %xt, %zero : !a, !xt, !accumulators
    lowlp.mbarrier_arrive %empty[%place]
    %next = lowlp.fma %scale, %raw, %acc : !accumulators
    ```

    After:

    ```mlir
    lowlp.mbarrier_wait %full[%place] parity %parity
    %a = lowlp.decode %words ...
    %s = lowlp.wgmma %a, %xs[%place, %c0, %c0] : !a, !lowlp.shared<4x64x64xf16, ...> -> !in_flight
    lowlp.wgmma_commit
    %raw = lowlp.wgmma_wait 0 takes %s : (!in_flight) -> !accumulators
    %next = lowlp.fma %scale, %raw, %acc : !accumulators
    lowlp.mbarrier_arrive %empty[%place]
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let options = [
    Option<"arch", "arch", "std::string", /*default=*/"\"sm_90a\"", "the architecture, such as sm_90a">,
  ];
  let statistics = [
    Statistic<"numProducts", "products", "products that warpgroups make">,
  ];
}

def VectorizeLookups : Pass<"lowlp-vectorize-lookups", "::lowlp::KernelOp"> {
  let summary = "look up two codes at once, in copies of a table that are spread over the banks";
  let description = [{
    Takes each `lowlp.lookup` of one tile of codes `ui1` to `ui8` in a shared tile of one dimension that holds `f16` or `bf16`, and
    chooses between (FLUTE, section 3.2):

    - pairs: codes of 1 to 6 bits, of which each thread holds an even number, by `lowlp.lookup_pairs`. The table has 4^b
      words of 32 bits;
    - entries: `lowlp.lookup`, in a table with copies where the plain one has more words than there are banks, which is
      for codes of 7 and 8 bits;
    - registers: `lowlp.lookup` of codes of 1 bit in the plain table, between whose two entries masks choose.

    The new table is filled by `lowlp.expand_table` once, before the first lookup and the loops around it that do not
    write the plain table, between barriers.

    A table of W words, of which C copies lie side by side, costs a warp that looks random codes up so many passes of
    the banks: the fewer of W C / 32, the words of a copy that a bank has, and the most lanes of 32 / C that are expected
    to meet in one of 32 / C banks; 1 at least. In cycles of a warp, a lookup of a pair costs its passes and 1 for the
    shift and the `lop3` of its address, for each slice in which its codes are packed; one of two entries twice that, and
    half for joining them; a pair of 1 bit in registers 1.25; filling a table 12 for each word that a thread stores, in
    up to four copies. A loop of unknown length is taken to run 32 times. Of the forms and numbers of copies that are
    allowed, the one of fewest bytes is taken among those that cost at most a tenth more than the cheapest.

    `form` allows only one of them; `copies` sets the number of copies, a power of two up to 32. With
    `copies=0` the new tables of a kernel take at most 48 KiB, and all its tiles of shared memory together at most 227 KiB.

    A lookup stays as it is where it has another type, where the table has not an entry for every code, where other ops
    than stores, `lowlp.copy_async` and loads use the table, and where the table is written again after the first lookup.

    Guarantees: the kernel computes the same. The entry `lookups` of the kernel's `lowlp.report` says what was decided.

    Before:

    ```mlir
    lowlp.synchronize
    scf.for %k = %c0 to %n step %c1 {
      %w = lowlp.lookup %table, %codes : !lowlp.shared<16xf16>, !codes -> !values
    }
    ```

    After:

    ```mlir
    lowlp.synchronize
    %pairs = lowlp.alloc_shared : !lowlp.shared<256x32x2xf16>
    lowlp.expand_table %table, %pairs : !lowlp.shared<16xf16>, !lowlp.shared<256x32x2xf16>
    lowlp.synchronize
    scf.for %k = %c0 to %n step %c1 {
      %w = lowlp.lookup_pairs %pairs, %codes : !lowlp.shared<256x32x2xf16>, !codes -> !values
    }
    ```
  
    The fields `table_form` and `table_copies` of the kernel's schedule come before the options.
  }];
  let options = [
    Option<"form", "form", "std::string", /*default=*/"\"auto\"", "how codes are looked up: pair, entry, register or auto">,
    Option<"copies", "copies", "unsigned", /*default=*/"0", "copies of each new table; 0 chooses">,
  ];
  let statistics = [
    Statistic<"numPairs", "pair-lookups", "lookups of two codes at once">,
    Statistic<"numCopied", "copied-lookups", "lookups of one code in a table with copies">,
    Statistic<"numBytes", "bytes", "bytes of new tables">,
  ];
}

#endif // LOWLP_TRANSFORMS_PASSES_TD
