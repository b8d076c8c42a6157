//===- LoopPasses.td - loops that load ahead and multiply --*- tablegen -*-===//
#ifndef LOWLP_TRANSFORMS_LOOPPASSES_TD
#define LOWLP_TRANSFORMS_LOOPPASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseRings : Pass<"lowlp-choose-rings", "::lowlp::KernelOp"> {
  let summary = "choose which loads of a loop run ahead, through which rings";
  let description = [{
    Takes each `scf.for` with the attribute `lowlp.stages`, of S places, and chooses for its loads of global memory rings of S
    places in shared memory, which `lowlp-pipeline` makes. Those loads of its body are meant whose offsets follow from the
    induction variable and from what is known before the loop, of elements of whole bytes, through parameters that the kernel
    does not write. The others stay as they are, each with a remark that says why.

    Where the architecture has tensor copies and all these loads fit what they demand (`lowlp.copy_tensor`), the first thread
    begins them. Neighbouring parts of a view become one copy. With a `producer` a warp of its own begins them
    (`lowlp.producer_warp`), where what they need can be computed at the begin of the kernel, for a loop in a loop from the
    induction variables of both, and no `lowlp.exit` may end the
    block before the loop. It may be numbers that `lowlp.load_scalar` loads from shared memory, if all stores to that stand in
    front of the loop in the body of the kernel, with a barrier of the block after them. Else all threads copy by
    `lowlp.copy_async`.

    Of a loop with `lowlp.multicast` too, those copies of a producer are made by the blocks of a cluster for each other
    (`#lowlp.multicast`) that are the same in all of them, in the same iterations, and divide into parts: their offsets and
    the loop's bounds follow from constants, parameters and the number of the cluster. Of the others a remark says why not.

    A place is laid out so that `ldmatrix` meets every bank once where the tile is held as matrices and its rows are 32, 64
    or 128 bytes.

    Requires: the loop stands in the body of the kernel itself, or of a loop there, and no `lowlp.exit` in it.

    Guarantees: no loop has `lowlp.stages`, and none that had it `lowlp.multicast`. A loop that has `lowlp.rings` already, and its loads, keep what they have.

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

    A loop in a loop goes on in the ring where the loop before has ended. A producer has both loops, so that it copies for the
    next while others end this one; else each begins by filling S - 1 places. A producer that loads numbers from shared memory
    begins when all other warps have come to the loop, which an mbarrier says.

    Of rings that multicast fills, a place is empty when the warps of all blocks of the cluster have read it, and a producer ends
    when all places are.

    The first S - 1 iterations are copied before the loop. Where a `lowlp.wait_for_dependencies` stands there, with nothing but
    arithmetic after it, what is loaded through parameters that carry `lowlp.constant` is copied before it. A producer that
    copies nothing else does not wait, whatever stands there.

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

def UseWarpgroups : Pass<"lowlp-use-warpgroups", "::lowlp::KernelOp"> {
  let summary = "make products by warpgroups, beside what makes their operands";
  let description = [{
    In a kernel whose schedule has `matrix_unit = warpgroup` and where the architecture has `wgmma`, takes each `lowlp.dot` whose
    operand b is a `lowlp.transpose` of a `lowlp.load_shared` from a tile that a matrix descriptor describes, and makes of it a
    `lowlp.wgmma` that reads the shared tile itself, a commit and a wait. With slices of K, each of whole warpgroups, operand b
    is loaded as [slices, N, K of a slice], transposed by [0, 2, 1], and seen by `lowlp.view` as [K, N]. Operand a and the accumulators must be held as
    `lowlp.wgmma` demands. Other products stay as they are.

    Of the products of a block at most `products_in_flight` of the schedule are in flight: while
    one multiplies, the operand of the next is made. Ops that use accumulators are put off until the wait for them, and
    the loads of an operand are put before the product in front of it. Loads of at most 128 bits of a thread, a power of two, go
    before one more where products have 64 columns at most or are of halves, unless several tiles of rows take turns. A
    chain of products, each of which adds to the accumulators of the one before, has one wait. At the end of the block, and
    before any op that cannot be put off and orders memory or has regions, all products are waited for; a
    `lowlp.mbarrier_arrive` among them goes after that wait, as it says that the stage has been read; it is marked
    `loads_ended` where products that are complete have used up all that was loaded before. Where threads have stored the
    shared tile, a `lowlp.fence_async` goes before the barrier in front of the product.

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
    lowlp.mbarrier_arrive %empty[%place] loads_ended
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

#endif // LOWLP_TRANSFORMS_LOOPPASSES_TD
